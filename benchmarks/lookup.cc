// The stencil benchmark: a 7-point Laplacian over a tree, beside the same over a plain array and over
// OpenVDB.
//
// One thread, floats, nanoseconds of CPU time per active voxel. The two fields of the tree, the two arrays
// and the two grids hold the same numbers, and the results are compared. The floor: the 64-byte lines that
// hold active voxels, read once and written once at the speed of a copy of as many bytes by one thread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/benchmarks.h"
#include "benchmarks/instructions.h"
#include "benchmarks/lookup_data.h"
#include "benchmarks/measure.h"
#include "benchmarks/peers/openvdb_stencil.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

struct Case {
  std::string name;
  Region region;
  double most_of_array;  // the target
};

std::vector<Case> cases(const Options& options) {
  const int32_t c = kTreeSide / 2;
  if (options.tiny) return {{"cube", {c, 8, 0, 0}, 1.5}, {"shell", kTinyShell, 0.9}};
  return {{"cube", {c, 64, 0, 0}, 1.5}, {"shell", kShell, 0.9}};
}

// Small enough for valgrind, and about as full.
Region small_region(bool is_shell) {
  const int32_t c = kTreeSide / 2;
  return is_shell ? Region{c, 32, 665, 1012} : Region{c, 16, 0, 0};
}

// The largest difference between our values and a peer's. Errors: kInternal when they do not compute the
// same.
void compare(const std::string& peer, double difference) {
  // Rounding of ten operations on numbers up to 1000.
  constexpr double kTolerance = 10 * 1000 * 1.2e-7;
  if (!(difference <= kTolerance))
    throw Error(ErrorCode::kInternal,
                fmt::format("lookup: our stencil and {} differ by {:.3g}, at most {:.3g} is "
                            "rounding",
                            peer, difference, kTolerance));
}

class Comparison {
 public:
  Comparison(Report& report, const Case& c) : report_(report), case_(c), tree_(c.region), array_(c.region) {
    vdb_ = make_openvdb_stencil(c.region, vdb_absent_);
    if (!is_shell()) masked_.emplace(c.region, Device::cpu(1), true);
  }
  void run() {
    choose_arrays();
    const int repetitions = report_.options().tiny ? 2 : report_.options().quick ? 15 : 41;
    std::vector<Contestant> all{{[&] { tree_.run(kCalls); }, kCalls}};
    all.push_back({[&] { repeat([&] { run_array(*dense_); }); }, kCalls});
    if (is_shell()) all.push_back({[&] { repeat([&] { array_.run_runs(*runs_); }); }, kCalls});
    if (masked_) all.push_back({[&] { masked_->run(kCalls); }, kCalls});
    std::vector<double> seconds = interleaved_medians(all, repetitions);
    // OpenVDB takes so long that it has rounds of its own, beside us again.
    std::vector<double> vdb_seconds;
    if (vdb_) {
      vdb_seconds = interleaved_medians({{[&] { tree_.run(kCalls); }, kCalls},
                                         {[&] { vdb_->run_stencil(); }},
                                         {[&] { vdb_->run_accessor(); }}},
                                        report_.options().tiny    ? 1
                                        : report_.options().quick ? 5
                                                                  : 15);
    }
    compare_values();
    add_rows(seconds, vdb_seconds);
  }

 private:
  static constexpr int kCalls = 4;
  bool is_shell() const { return case_.region.outer2 != 0; }
  template <class Call>
  static void repeat(const Call& call) {
    for (int i = 0; i < kCalls; ++i) call();
  }
  void run_array(const ArrayStencil& s) { is_shell() ? array_.run_list(s) : array_.run_cube(s); }

  // Chooses the stencil that is the fastest here, of those that were compiled.
  void choose_arrays() {
    for (const ArrayStencil& s : array_stencils()) {
      if (!s.is_portable) stencils_.push_back(s);
    }
    std::vector<Contestant> plain, runs;
    for (const ArrayStencil& s : stencils_) {
      plain.push_back({[this, &s] { run_array(s); }});
      runs.push_back({[this, &s] { array_.run_runs(s); }});
    }
    const auto fastest = [&](const std::vector<Contestant>& all) {
      const std::vector<double> seconds = interleaved_medians(all, 5);
      return &stencils_[static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) -
                                            seconds.begin())];
    };
    dense_ = fastest(plain);
    if (is_shell()) runs_ = fastest(runs);
  }

  void compare_values() {
    uint64_t count = 0;
    const std::vector<float> ours = tree_.result(count);
    if (count != array_.num_voxels())
      throw Error(ErrorCode::kInternal,
                  fmt::format("lookup: {} voxels in the tree, {} in the array", count, array_.num_voxels()));
    const auto n = static_cast<size_t>(case_.region.side());
    const auto first = case_.region.first();
    const auto value = [&](int32_t x, int32_t y, int32_t z) {
      return ours[(static_cast<size_t>(x - first) * n + static_cast<size_t>(y - first)) * n +
                  static_cast<size_t>(z - first)];
    };
    const auto difference = [&](auto&& run) {
      array_.clear_next();
      run();
      double largest = 0;
      for_each_voxel(case_.region, [&](int32_t x, int32_t y, int32_t z) {
        largest = std::max<double>(largest, std::fabs(value(x, y, z) - array_.next(x, y, z)));
      });
      return largest;
    };
    compare("the array", difference([&] { run_array(*dense_); }));
    if (is_shell()) compare("the array's runs", difference([&] { array_.run_runs(*runs_); }));
    if (masked_ && masked_->result(count) != ours)
      throw Error(ErrorCode::kInternal, "lookup: leaves with masks, all full, differ from dense ones");
    if (!vdb_) return;
    double largest = 0;
    size_t voxels = 0;
    vdb_->visit([&](int32_t x, int32_t y, int32_t z, float v) {
      ++voxels;
      largest = std::max<double>(largest, std::fabs(value(x, y, z) - v));
    });
    if (voxels != count)
      throw Error(ErrorCode::kInternal,
                  fmt::format("lookup: {} voxels in the tree, {} in OpenVDB", count, voxels));
    compare("OpenVDB", largest);
  }

  void add_rows(const std::vector<double>& seconds, const std::vector<double>& vdb_seconds) {
    const auto voxels = static_cast<double>(array_.num_voxels());
    const auto ns = [&](double s) { return s * 1e9 / voxels; };
    const double bytes = least_bytes(case_.region);
    const double floor = ns(bytes / copy_bytes_per_s(1, static_cast<size_t>(bytes / 2)));
    const uint64_t leaves = tree_.num_leaves();
    const std::string what = fmt::format("{} voxels, {} leaves {:.0f} % full, 1 thread", array_.num_voxels(),
                                         leaves, 100 * voxels / (512.0 * static_cast<double>(leaves)));
    Row row;
    row.name = "lookup/" + case_.name, row.unit = "ns/voxel", row.floor = floor;
    row.ours = ns(seconds[0]), row.peer = ns(seconds[1]), row.target = ratio_at_most(case_.most_of_array);
    row.peer_name = fmt::format("plain array{}, {}", is_shell() ? " with an index list" : "", dense_->name);
    row.detail = what;
    const std::string shape = is_shell() ? "shell" : "cube";
    count_instructions(row, shape, number_of(dense_));
    report_.add(row);
    if (is_shell()) {
      count_instructions(row, "shell_runs", number_of(runs_));
      row.name += "_runs", row.peer = ns(seconds[2]), row.target.reset();
      row.peer_name = fmt::format("plain array with a list of {} runs, {}", array_.num_runs(), runs_->name);
      report_.add(row);
    }
    if (masked_) add_masked(row, ns(seconds[2]));
    row.name = "lookup/" + case_.name + "_openvdb", row.peer.reset(), row.peer_name = vdb_absent_;
    row.target = ratio_at_most(1.0 / 15);
    if (vdb_) count_instructions(row, shape + "_openvdb", 0);
    if (vdb_) {
      const bool stencil = vdb_seconds[1] < vdb_seconds[2];
      row.ours = ns(vdb_seconds[0]), row.peer = ns(std::min(vdb_seconds[1], vdb_seconds[2]));
      row.peer_name = fmt::format("OpenVDB {} ({}: {:.1f})", stencil ? "SevenPointStencil" : "ValueAccessor",
                                  stencil ? "ValueAccessor" : "SevenPointStencil",
                                  ns(std::max(vdb_seconds[1], vdb_seconds[2])));
    }
    report_.add(row);
  }

  // The same cells below masks, all of whose bits are set.
  void add_masked(Row row, double ns) {
    row.name += "_masked", row.ours = ns, row.target.reset();
    if (report_.options().instructions) row.instructions = wait_instructions("lookup/cube_masked/0");
    report_.add(row);
  }

  // Ours are the same in all rows of a shape; the peer's in what a valgrind can run of the chosen compiler.
  void count_instructions(Row& row, const std::string& peer, size_t compiler) {
    if (!report_.options().instructions) return;
    if (!our_instructions_)
      our_instructions_ = wait_instructions(is_shell() ? "lookup/shell/0" : "lookup/cube/0");
    row.instructions = our_instructions_;
    row.peer_instructions = wait_instructions(fmt::format("lookup/{}_peer/{}", peer, compiler));
  }
  size_t number_of(const ArrayStencil* s) const { return static_cast<size_t>(s - stencils_.data()); }

  Report& report_;
  Case case_;
  std::optional<double> our_instructions_;
  TreeStencil tree_;
  std::optional<TreeStencil> masked_;
  ArrayData array_;
  std::unique_ptr<OpenVdbStencil> vdb_;
  std::string vdb_absent_;
  std::vector<ArrayStencil> stencils_;
  const ArrayStencil *dense_ = nullptr, *runs_ = nullptr;
};

}  // namespace

// "shell_runs_peer", of the compiler with this number.
double work_on_lookup(const std::string& name, size_t compiler, const WorkCounter& counter) {
  const bool is_shell = name.starts_with("shell");
  const Region region = small_region(is_shell);
  constexpr int kCalls = 8;
  ArrayData array(region);
  const double voxels = static_cast<double>(array.num_voxels()) * kCalls;
  if (!name.ends_with("_peer")) {
    TreeStencil tree(region, Device::cpu(1), name == "cube_masked");
    counter.count([&] { tree.run(1); }, kCalls);
    return voxels;
  }
  if (name.find("openvdb") != std::string::npos) {
    std::string absent;
    const std::unique_ptr<OpenVdbStencil> vdb = make_openvdb_stencil(region, absent);
    if (!vdb) throw Error(ErrorCode::kUnavailable, absent);
    counter.count([&] { vdb->run_accessor(); }, kCalls);
    return voxels;
  }
  std::vector<ArrayStencil> portable;
  for (const ArrayStencil& s : array_stencils()) {
    if (s.is_portable) portable.push_back(s);
  }
  const ArrayStencil& s = portable.at(compiler);
  if (name == "cube_peer") counter.count([&] { array.run_cube(s); }, kCalls);
  if (name == "shell_peer") counter.count([&] { array.run_list(s); }, kCalls);
  if (name == "shell_runs_peer") counter.count([&] { array.run_runs(s); }, kCalls);
  return voxels;
}

void run_lookup(Report& report) {
  for (const Case& c : cases(report.options())) {
    report.begin("lookup, " + c.name);
    Comparison(report, c).run();
  }
}

}  // namespace coppice::bench
