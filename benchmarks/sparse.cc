// The sparse benchmark: activation, collection, lists, loops and a stencil on sparse
// trees, beside Taichi and OpenVDB.
//
// Sides take turns, run by run. Wall clock on all threads; the stencil on one thread, in CPU time, as in
// lookup.cc. peers/sparse_taichi.py is the other side; docs/benchmarks.md defines the workloads.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "benchmarks/benchmarks.h"
#include "benchmarks/instructions.h"
#include "benchmarks/lookup_data.h"
#include "benchmarks/measure.h"
#include "benchmarks/peers/openvdb_stencil.h"
#include "benchmarks/sparse_peer.h"
#include "benchmarks/sparse_trees.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

SparseSizes sizes(const Options& options) {
  if (options.tiny) return {16, 80, 1 << 12, kTinyShell, 2};
  return {512, 3200, 1 << 20, kShell, options.quick ? 3 : 15};
}

// Besides its values a block of the filled tree needs a header and a slot.
constexpr double kBlockBytes = 64 * sizeof(float), kHeadBytes = 32 + 4;

struct Times {
  double ours = 0;
  std::optional<double> peer;
};

// Medians of runs that take turns, each side once before to warm up. `run` prepares, and returns what it
// timed.
Times time_in_turns(const std::function<double()>& run, SparsePeer& peer, const std::string& workload,
                    int repetitions, const char* clock = "seconds") {
  const std::string command = "time " + workload;
  run(), peer.ask(command, clock);
  std::vector<double> ours, theirs;
  for (int r = 0; r < repetitions; ++r) {
    ours.push_back(run());
    if (const std::optional<double> seconds = peer.ask(command, clock)) theirs.push_back(*seconds);
  }
  Times t{median(ours), {}};
  if (peer.is_there()) t.peer = median(theirs);
  return t;
}

double timed(const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  call();
  return seconds_since(start);
}

// Errors: kInternal when a peer did not compute the same.
void compare(const std::string& workload, const std::string& what, double ours,
             std::optional<double> theirs) {
  if (!theirs || std::abs(ours - *theirs) <= 1e-6 * std::abs(ours)) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("sparse/{}: our {} is {:.10g}, the peer's {:.10g}", workload, what, ours, *theirs));
}

// Growth of resident memory by what `make` builds and keeps; built once before, so that its kernels are
// there.
double resident_growth(const std::function<std::shared_ptr<void>()>& make) {
  make();
  ::malloc_trim(0);
  const size_t before = resident_bytes();
  const std::shared_ptr<void> kept = make();
  return static_cast<double>(resident_bytes()) - static_cast<double>(before);
}

class SparseRows {
 public:
  explicit SparseRows(Report& report)
      : report_(report),
        sizes_(sizes(report.options())),
        device_(Device::cpu()),
        taichi_(report.options(), sizes_, "cpu", device_->threads()) {}

  void run() {
    run_fill();
    run_fill_by_threads();
    run_fill_box();
    for (const bool whole_leaves : {false, true}) run_struct_for(whole_leaves);
    run_large("dense_line", 1, sizes_.items * 4);
    run_large("dense_image", sizes_.side * 2 / 3, sizes_.side * 2 / 3);
    for (const bool many : {false, true}) run_append(many);
    run_laplacian();
  }

 private:
  int threads() const { return device_->threads(); }
  // Seconds that so many bytes take at the speed of a copy.
  static double floor_s(double bytes, int threads) {
    return bytes / copy_bytes_per_s(threads, (static_cast<size_t>(bytes / 2) >> 20 << 20) + (1 << 20));
  }
  Row make_row(const std::string& name, const std::string& unit, double scale, const Times& t,
               double floor_seconds) {
    Row row;
    row.name = "sparse/" + name, row.unit = unit, row.ours = t.ours * scale,
    row.floor = floor_seconds * scale;
    if (t.peer) row.peer = *t.peer * scale;
    row.peer_name = taichi_.name(), row.target = ratio_at_most(1.0 / 2);
    return row;
  }
  void add_bytes(const std::string& name, double bytes, double voxels, double payload, SparsePeer& peer,
                 const std::string& detail) {
    const std::optional<double> theirs = peer.ask("bytes " + name, "bytes");
    Row row;
    row.name = "sparse/bytes_" + name.substr(0, name.find("_active")), row.unit = "B/voxel";
    row.ours = bytes / voxels, row.floor = payload;
    if (theirs) row.peer = *theirs / voxels;
    row.peer_name = peer.name(), row.detail = detail;
    report_.add(row);
  }

  void run_fill() {
    report_.begin(fmt::format("sparse, fill, {}^2", sizes_.blocks * 8));
    add_bytes("fill_active",  // first: Taichi's process has no memory to use again
              resident_growth([&] {
                auto tree = std::make_shared<FillTree>(device_, sizes_.blocks);
                tree->wait_fill(), tree->wait_list_s();
                return tree;
              }),
              std::pow(sizes_.blocks * 8.0, 2), sizeof(float), taichi_, "all active");
    FillTree tree(device_, sizes_.blocks);
    const auto blocks = static_cast<double>(tree.num_blocks());
    const std::string what = fmt::format("{} blocks of 8^2, {} threads", tree.num_blocks(), threads());
    const auto add = [&](const std::string& name, const Times& t, double bytes) {
      Row row = make_row(name, "ms", 1e3, t, floor_s(bytes, threads()));
      row.detail = what;
      if (name == "fill_empty") row.target = ratio_at_most(0.3);
      if (name.ends_with("_gc")) row.target = ratio_at_most(0.15);
      report_.add(row);
      if (!name.ends_with("_gc")) return;
      row = make_row(name + "_block", "ns/(block core)", threads() * 1e9 / blocks, t,
                     floor_s(bytes, threads()));
      row.detail = what, row.target = ours_at_most(100);
      report_.add(row);
    };
    const auto time = [&](const std::string& name, const std::function<double()>& run) {
      return time_in_turns(run, taichi_, name, sizes_.repetitions);
    };
    tree.wait_fill();
    add("fill_active", time("fill_active", [&] { return timed([&] { tree.wait_fill(); }); }),
        blocks * kBlockBytes);
    add("fill_empty",
        time("fill_empty",
             [&] {
               tree.wait_clear();
               return timed([&] { tree.wait_fill(); });
             }),
        blocks * (kBlockBytes + kHeadBytes));
    compare("fill_empty", "sum", tree.wait_sum(), taichi_.ask("check fill_empty", "sum"));
    tree.wait_clear();
    add("fill_clear_gc",
        time("fill_clear_gc", [&] { return timed([&] { tree.wait_fill(), tree.wait_clear(); }); }),
        blocks * 2 * (kBlockBytes + kHeadBytes));
    add("activate_clear_gc",
        time("activate_clear_gc", [&] { return timed([&] { tree.wait_activate(), tree.wait_clear(); }); }),
        blocks * (kBlockBytes + 2 * kHeadBytes));
    tree.wait_fill();
    Times list = time("list", [&] {
      tree.wait_touch();
      return tree.wait_list_s();
    });
    Row row = make_row("list", "ms", 1e3, list, floor_s(blocks * (64 + 24), threads()));
    row.peer_name += taichi_.is_there() ? ", listgen tasks by its profiler" : "";
    row.detail = what + ", after one block changed";
    report_.add(row);
  }

  // All threads beside one, and how often they write to lines that they share.
  void run_fill_by_threads() {
    report_.begin("sparse, fill, all threads beside one");
    FillTree all(device_, sizes_.blocks), one(Device::cpu(1), sizes_.blocks);
    const auto blocks = static_cast<double>(all.num_blocks());
    const auto add = [&](const std::string& name, const std::function<double(FillTree&)>& run) {
      run(all), run(one);
      const uint64_t before = all.shared_writes();
      std::vector<double> of_all, of_one;
      for (int r = 0; r < sizes_.repetitions; ++r) {
        of_all.push_back(run(all));
        of_one.push_back(run(one));
      }
      const std::string what = fmt::format("{} blocks of 8^2, {} threads", all.num_blocks(), threads());
      Row row;
      row.name = "sparse/" + name + "_threads", row.unit = "ms", row.ours = median(of_all) * 1e3;
      row.peer = median(of_one) * 1e3, row.peer_name = "ours, 1 thread", row.target = ratio_at_most(0.6);
      row.floor = floor_s(blocks * (kBlockBytes + kHeadBytes), threads()) * 1e3;
      row.detail = what;
      report_.add(row);
      row = Row();
      row.name = "sparse/" + name + "_shared", row.unit = "writes/block";
      row.ours = static_cast<double>(all.shared_writes() - before) / (blocks * sizes_.repetitions);
      row.target = ours_at_most(1.0 / 16), row.detail = what + "; to lines of the allocator";
      report_.add(row);
    };
    add("fill_empty", [](FillTree& tree) {
      tree.wait_clear();
      return timed([&] { tree.wait_fill(); });
    });
    add("activate_clear_gc",
        [](FillTree& tree) { return timed([&] { tree.wait_activate(), tree.wait_clear(); }); });
  }

  // A loop over a box beside one that writes each cell by its coordinate.
  void run_fill_box() {
    report_.begin("sparse, fill by a loop over a box");
    FillTree tree(device_, sizes_.blocks);
    const auto blocks = static_cast<double>(tree.num_blocks());
    for (const bool is_empty : {false, true}) {
      const auto run = [&](void (FillTree::*fill)()) {
        if (is_empty) tree.wait_clear();
        return timed([&] { (tree.*fill)(); });
      };
      std::vector<double> by_box, by_coordinate;
      for (int r = -1; r < sizes_.repetitions; ++r) {  // the first to warm up
        const double box = run(&FillTree::wait_fill_box), coordinate = run(&FillTree::wait_fill);
        if (r >= 0) by_box.push_back(box), by_coordinate.push_back(coordinate);
      }
      Row row;
      row.name = is_empty ? "sparse/fill_empty_box" : "sparse/fill_active_box", row.unit = "ms";
      row.ours = median(by_box) * 1e3, row.peer = median(by_coordinate) * 1e3;
      row.peer_name = "ours, by coordinate";
      row.floor = floor_s(blocks * (kBlockBytes + (is_empty ? kHeadBytes : 0)), threads()) * 1e3;
      row.detail = fmt::format("{} blocks of 8^2, {} threads", tree.num_blocks(), threads());
      report_.add(row);
    }
    tree.wait_clear(), tree.wait_fill_box();
    const double cells = std::pow(sizes_.blocks * 8.0, 2);
    compare("fill_empty_box", "sum", tree.wait_sum(), 2 * cells);
  }

  void run_struct_for(bool whole_leaves) {
    const std::string name = whole_leaves ? "struct_for_leaves" : "struct_for";
    report_.begin(fmt::format("sparse, {}, a tenth of {}^2", name, sizes_.side));
    const auto make = [&] {
      auto tree = std::make_shared<OccupiedTree>(device_, sizes_.side, whole_leaves);
      tree->wait_scale();
      return tree;
    };
    const double bytes = resident_growth(make);
    const std::shared_ptr<OccupiedTree> tree = make();
    const auto active = static_cast<double>(tree->num_active());
    const std::string what =
        fmt::format("{} of {}^2 cells, {} threads", tree->num_active(), sizes_.side, threads());
    const Times t =
        time_in_turns([&] { return timed([&] { tree->wait_scale(); }); }, taichi_, name, sizes_.repetitions);
    compare(name, "count of active cells", active, taichi_.ask("check " + name, "active"));
    compare(name, "sum", tree->wait_sum(), taichi_.ask("check " + name, "sum"));
    Row row = make_row(name, "ns/cell", 1e9 / active, t, floor_s(tree->least_bytes(), threads()));
    row.detail = what;
    report_.add(row);
    add_bytes(name, bytes, active, 2 * sizeof(float), taichi_, what);
  }

  // One container that all threads share; the peer is one thread.
  void run_large(const std::string& name, int64_t rows, int64_t row_cells) {
    report_.begin("sparse, " + name);
    const auto make = [&](const IntrusivePtr<Device>& device) {
      return LargeTree(device, static_cast<int32_t>(rows), static_cast<int32_t>(row_cells));
    };
    LargeTree all = make(device_), one = make(Device::cpu(1));
    all.wait_iterate(), one.wait_iterate();
    std::vector<double> of_all, of_one;
    for (int r = 0; r < sizes_.repetitions; ++r) {
      of_all.push_back(timed([&] { all.wait_iterate(); }));
      of_one.push_back(timed([&] { one.wait_iterate(); }));
    }
    const double cells = all.num_cells();
    Row row;
    row.name = "sparse/" + name, row.unit = "ns/cell", row.ours = median(of_all) * 1e9 / cells;
    row.peer = median(of_one) * 1e9 / cells, row.peer_name = "ours, 1 thread";
    row.floor = floor_s(2 * sizeof(float) * cells, threads()) * 1e9 / cells;
    row.detail = fmt::format("{} x {} cells of one container, {} threads", rows, row_cells, threads());
    report_.add(row);
  }

  void run_append(bool many) {
    const std::string name = many ? "append_many" : "append_one";
    report_.begin("sparse, " + name);
    // Fewer into one list: in Taichi an append walks through all chunks of its list.
    AppendTree tree(device_, many ? sizes_.items : sizes_.items / 8, many);
    const auto run = [&] {
      tree.wait_clear();
      return timed([&] { tree.wait_append(); });
    };
    const Times t = time_in_turns(run, taichi_, name, sizes_.repetitions);
    compare(name, "sum", tree.wait_sum(), taichi_.ask("check " + name, "sum"));
    const auto items = static_cast<double>(tree.num_items());
    Row row = make_row(name, "ns/append", 1e9 / items, t, floor_s(items * sizeof(int32_t), threads()));
    if (!many) row.target = ratio_at_most(0.1);
    row.detail = fmt::format("{} integers into {} list{}, {} threads", tree.num_items(), tree.num_lists(),
                             many ? "s" : "", threads());
    report_.add(row);
    if (many) run_append_bulk(tree, t.peer);
    if (!many) run_append_by_threads(tree);
  }
  // All threads beside one, and how often they write to the list's head.
  void run_append_by_threads(AppendTree& all) {
    AppendTree one(Device::cpu(1), all.num_items(), false);
    const auto run = [](AppendTree& tree) {
      tree.wait_clear();
      return timed([&] { tree.wait_append(); });
    };
    run(all), run(one);
    const uint64_t before = all.shared_writes();
    std::vector<double> of_all, of_one;
    for (int r = 0; r < sizes_.repetitions; ++r) of_all.push_back(run(all)), of_one.push_back(run(one));
    const auto items = static_cast<double>(all.num_items());
    Row row;
    row.name = "sparse/append_one_threads", row.unit = "ns/append", row.ours = median(of_all) * 1e9 / items;
    row.peer = median(of_one) * 1e9 / items, row.peer_name = "ours, 1 thread", row.target = ratio_at_most(1);
    row.floor = floor_s(items * sizeof(int32_t), threads()) * 1e9 / items;
    row.detail = fmt::format("{} integers into 1 list, {} threads", all.num_items(), threads());
    report_.add(row);
    row.name = "sparse/append_one_shared", row.unit = "writes/append", row.peer.reset(), row.peer_name = "";
    row.ours = static_cast<double>(all.shared_writes() - before) / (items * sizes_.repetitions);
    row.target = ours_at_most(1.0 / 16), row.floor = {};
    report_.add(row);
  }
  // Beside the peer's appends, which were timed just now.
  void run_append_bulk(AppendTree& tree, std::optional<double> peer) {
    const auto run = [&] {
      tree.wait_clear();
      return timed([&] { tree.wait_append_bulk(); });
    };
    run();
    std::vector<double> seconds;
    for (int r = 0; r < sizes_.repetitions; ++r) seconds.push_back(run());
    compare("append_many_bulk", "sum", tree.wait_sum(), taichi_.ask("check append_many", "sum"));
    const auto items = static_cast<double>(tree.num_items());
    Row row = make_row("append_many_bulk", "ns/append", 1e9 / items, {median(seconds), peer},
                       floor_s(items * (4 + 3) * sizeof(int32_t), threads()));
    row.target = ratio_at_most(1.0 / 4);
    row.detail = fmt::format("{} integers into {} lists by one call, {} threads", tree.num_items(),
                             tree.num_lists(), threads());
    report_.add(row);
  }

  void run_laplacian() {
    report_.begin("sparse, laplacian on a shell");
    const Region& shell = sizes_.shell;
    const IntrusivePtr<Device> one = Device::cpu(1);
    const auto make = [&] {
      auto tree = std::make_shared<TreeStencil>(shell, one);
      tree->run(1);
      return tree;
    };
    const double bytes = resident_growth(make);
    SparsePeer taichi(report_.options(), sizes_, "cpu", 1);
    taichi.ask("bytes laplacian", "bytes");  // its memory before anything else grows
    const std::shared_ptr<TreeStencil> tree = make();
    std::string vdb_absent;
    const std::unique_ptr<OpenVdbStencil> vdb = make_openvdb_stencil(shell, vdb_absent);
    std::vector<Contestant> all{{[&] { tree->run(4); }, 4}};
    if (vdb) {
      all.push_back({[&] { vdb->run_raw_voxels(); }});
      all.push_back({[&] { vdb->run_raw_rows(); }});
      all.push_back({[&] { vdb->run_stencil(); }});
      all.push_back({[&] { vdb->run_accessor(); }});
    }
    const std::vector<double> s = interleaved_medians(all, sizes_.repetitions);
    const auto run = [&] { return interleaved_medians({{[&] { tree->run(4); }, 4}}, 1)[0]; };
    const Times plain = time_in_turns(run, taichi, "laplacian", sizes_.repetitions, "cpu_seconds");
    const Times tiles = time_in_turns(run, taichi, "laplacian_in_tiles", sizes_.repetitions, "cpu_seconds");

    uint64_t count = 0;
    double sum = 0;
    for (const float v : tree->result(count)) sum += v;
    compare("laplacian", "count of voxels", static_cast<double>(count),
            taichi.ask("check laplacian", "active"));
    compare("laplacian", "sum", sum, taichi.ask("check laplacian", "sum"));
    compare_openvdb(vdb.get(), sum);
    const auto voxels = static_cast<double>(count);
    const double floor = floor_s(least_bytes(shell), 1), ns = 1e9 / voxels;
    const std::string what = fmt::format("{} voxels, 1 thread", count);
    Row row = make_row("laplacian", "ns/voxel", ns, plain.peer <= tiles.peer ? plain : tiles, floor);
    row.peer_name = taichi.name(), row.detail = what;
    if (taichi.is_there())
      row.detail += fmt::format(", plain {:.1f}, block_local {:.1f}", *plain.peer * ns, *tiles.peer * ns);
    report_.add(row);
    row = make_row("laplacian_raw", "ns/voxel", ns, {s[0], {}}, floor);
    row.peer_name = vdb_absent, row.detail = what;
    if (vdb) {
      row.peer = s[1] * ns;
      row.peer_name = "loop over OpenVDB's raw buffers, voxel by voxel";
      row.detail += fmt::format("; rows of 8, vectorised and blended: {:.2f}", s[2] * ns);
    }
    report_.add(row);
    row = make_row("laplacian_openvdb", "ns/voxel", ns, {s[0], {}}, floor);
    row.target = ratio_at_most(1.0 / 15), row.peer_name = vdb_absent, row.detail = what;
    if (vdb) {  // the faster of its two ways counts
      row.peer = std::min(s[3], s[4]) * ns;
      row.peer_name =
          fmt::format("OpenVDB, SevenPointStencil: {:.1f}, ValueAccessor: {:.1f}", s[3] * ns, s[4] * ns);
    }
    report_.add(row);
    add_bytes("laplacian", bytes, voxels, 2 * sizeof(float), taichi,
              what + (vdb ? fmt::format("; OpenVDB, two grids: {:.2f}",
                                        static_cast<double>(vdb->memory_bytes()) / voxels)
                          : ""));
  }

  // After each of its ways: they must agree.
  void compare_openvdb(OpenVdbStencil* vdb, double sum) {
    if (vdb == nullptr) return;
    const auto check = [&](const char* way, const std::function<void()>& run) {
      run();
      double theirs = 0;
      vdb->visit([&](int32_t, int32_t, int32_t, float v) { theirs += v; });
      compare("laplacian", fmt::format("sum beside OpenVDB's {}", way), sum, theirs);
    };
    check("raw voxels", [&] { vdb->run_raw_voxels(); });
    check("raw rows", [&] { vdb->run_raw_rows(); });
    check("accessor", [&] { vdb->run_accessor(); });
  }

  Report& report_;
  SparseSizes sizes_;
  IntrusivePtr<Device> device_;
  SparsePeer taichi_;
};

}  // namespace

// One thread, so that nothing spins: instructions per block, or per active cell.
double work_on_sparse(const std::string& name, const WorkCounter& counter) {
  const IntrusivePtr<Device> device = Device::cpu(1);
  constexpr int kCalls = 4;
  if (name.starts_with("struct_for")) {
    OccupiedTree tree(device, 800, name == "struct_for_leaves");
    counter.count([&] { tree.wait_scale(); }, kCalls);
    return static_cast<double>(tree.num_active()) * kCalls;
  }
  if (name.starts_with("append")) {
    AppendTree tree(device, 1 << 16, name != "append_one");
    const bool bulk = name == "append_many_bulk";
    const auto call = [&] { tree.wait_clear(), bulk ? tree.wait_append_bulk() : tree.wait_append(); };
    call();
    counter.count(call, kCalls);
    return static_cast<double>(tree.num_items()) * kCalls;
  }
  FillTree tree(device, 128);
  const double blocks = static_cast<double>(tree.num_blocks()) * kCalls;
  const auto count = [&](const std::function<void()>& call) {
    call();
    counter.count(call, kCalls);
    return blocks;
  };
  if (name == "fill_clear_gc") return count([&] { tree.wait_fill(), tree.wait_clear(); });
  if (name == "activate_clear_gc") return count([&] { tree.wait_activate(), tree.wait_clear(); });
  tree.wait_fill();
  if (name == "fill_active") return count([&] { tree.wait_fill(); });
  if (name == "fill_active_box") return count([&] { tree.wait_fill_box(); });
  if (name == "list") return count([&] { tree.wait_touch(), tree.wait_list_s(); });
  throw Error(ErrorCode::kUsage, fmt::format("--work sparse/{}: no such case", name));
}

void run_sparse(Report& report) { SparseRows(report).run(); }

}  // namespace coppice::bench
