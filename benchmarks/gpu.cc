// The GPU benchmark: copies, stencils over trees, activation and collection, lists,
// particles, on the device of --device.
//
// docs/benchmarks.md says what each row is. Data are several times a GPU's last cache, outputs are written
// over beforehand; times: see device_speed.h. On the cpu or on the emulated GPU it is a rehearsal, for
// which --quick and --tiny are there.
#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "benchmarks/benchmarks.h"
#include "benchmarks/device_speed.h"
#include "benchmarks/gpu_trees.h"
#include "benchmarks/measure.h"
#include "benchmarks/mpm.h"
#include "benchmarks/sparse_peer.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

struct GpuSizes {
  size_t copy_bytes;
  int32_t full_side, tenth_leaves_side, tenth_cells_side;  // of cubes, in cells
  int32_t blocks, squares;                                 // per axis of a square, and how many squares
  DeviceRuns times;
};

GpuSizes sizes(const Options& options) {
  if (options.tiny) return {1 << 16, 16, 32, 16, 8, 2, {1, 2}};
  if (options.quick) return {size_t{1} << 27, 128, 256, 128, 128, 4, {3, 4}};
  return {size_t{1} << 30, 512, 1024, 512, 512, 8, {7, 8}};
}

// Besides its values a block needs a header and a slot.
constexpr double kBlockBytes = kLeafSide * kLeafSide * sizeof(float), kHeadBytes = 32 + 4;
constexpr double kSectorBytes = 32;      // that one scattered value costs a GPU, read and written
constexpr double kListedBytes = 4 + 24;  // a slot read, an element written

class GpuRows {
 public:
  GpuRows(Report& report, IntrusivePtr<Device> device)
      : report_(report),
        device_(std::move(device)),
        sizes_(sizes(report.options())),
        taichi_(report.options(), {sizes_.blocks, 80, 1 << 12, {256, 8, 1, 2}, sizes_.times.runs},
                device_->name(), device_->threads()),
        warp_(report.options(), sizes_.full_side, sizes_.tenth_leaves_side, device_->name()) {}

  void run() {
    attempt("copy", [&] { run_copy(); });
    attempt("laplacian_full", [&] { run_laplacian("laplacian_full", sizes_.full_side, {0}); });
    attempt("laplacian_tenth_leaves",
            [&] { run_laplacian("laplacian_tenth_leaves", sizes_.tenth_leaves_side, {kLeafSide}); });
    attempt("laplacian_tenth_cells",
            [&] { run_laplacian("laplacian_tenth_cells", sizes_.tenth_cells_side, {1}); });
    attempt("clear_gc", [&] { run_clear_gc(); });
    attempt("activations", [&] { run_activations(); });
    attempt("mpm", [&] { run_mpm_on_device(report_, device_, copy_); });
    attempt("mpm beside taichi", [&] { run_mpm_beside_taichi(report_, device_, copy_); });
  }

 private:
  // A part that fails leaves the others their turn.
  void attempt(const std::string& name, const std::function<void()>& part) {
    report_.begin("gpu, " + name);
    try {
      part();
      wait_done(device_->default_stream().barrier());
    } catch (const Error& error) {
      report_.add_failure("gpu/" + name, error.what());
      device_->default_stream().clear_error();
    }
  }
  double floor_s(double bytes) const { return bytes / copy_; }
  Row make_row(const std::string& name, const std::string& unit, double ours, double floor) const {
    Row row;
    row.name = "gpu/" + name, row.unit = unit, row.ours = ours, row.floor = floor;
    return row;
  }

  void run_copy() {
    const CopySpeed speed = device_copy_speed(*device_, sizes_.copy_bytes, sizes_.times);
    copy_ = speed.median;
    Row row = make_row("copy", "GB/s", speed.median / 1e9, speed.best / 1e9);
    row.detail = fmt::format("read and written, {} MiB by the device's own copy; floor: the best run",
                             sizes_.copy_bytes >> 20);
    report_.add(row);
    report_.set_machine(fmt::format("device: {}, {}\ncopy: {:.1f} GB/s read and written by the device itself",
                                    device_->name(), device_->description(), copy_ / 1e9));
  }

  void run_laplacian(const std::string& name, int32_t side, Occupancy occupancy) {
    CubeTree tree(device_, side, occupancy);
    const double seconds = device_seconds(
        *device_, sizes_.times, [&] { tree.give_poison(); }, [&](int) { return tree.give_stencil(); });
    tree.wait_check();
    const double speed = tree.least_bytes() / seconds;
    Row row = make_row(name, "GB/s", speed / 1e9, copy_ / 1e9);
    row.peer = copy_ / 1e9, row.peer_name = "the device's own copy";
    if (occupancy.unit != 1) row.target = ratio_at_least(0.8);
    row.detail = fmt::format("{} of {}^3 cells active, {:.4g} ns per active cell, {:.0f} bytes each",
                             tree.num_active(), side, 1e9 * seconds / static_cast<double>(tree.num_active()),
                             tree.least_bytes() / static_cast<double>(tree.num_active()));
    report_.add(row);
    if (occupancy.unit != 1) add_warp(name, tree, seconds);
  }
  // The same stencil in Warp: over a dense array where all is active, over a NanoVDB volume's tiles else.
  void add_warp(const std::string& name, const CubeTree& tree, double seconds) {
    const std::string workload = name.substr(name.find('_') + 1);
    std::vector<double> theirs;
    for (int run = 0; run <= sizes_.times.runs; ++run) {
      const std::optional<double> once = warp_.ask("time " + workload, "seconds");
      if (once && run > 0) theirs.push_back(*once);
    }
    const auto cells = static_cast<double>(tree.num_active());
    Row row =
        make_row(name + "_warp", "ns/cell", 1e9 * seconds / cells, 1e9 * floor_s(tree.least_bytes()) / cells);
    if (const std::optional<double> sum = warp_.ask("check " + workload, "sum")) {
      const double wanted = tree.expected_sum();
      if (!(std::abs(*sum - wanted) <= 1e-5 * std::abs(wanted)))
        throw Error(ErrorCode::kInternal,
                    fmt::format("warp's stencil sums up to {} instead of {}", *sum, wanted));
      row.peer = 1e9 * median(theirs) / cells;
    }
    row.peer_name = warp_.name();
    report_.add(row);
  }

  void run_clear_gc() {
    SquaresTree tree(device_, sizes_.blocks, 1);
    const auto blocks = static_cast<double>(tree.blocks_per_square());
    const auto add = [&](const std::string& name, double bytes_per_block, const auto& give_all) {
      const double seconds = device_seconds(
          *device_, sizes_.times, [&] { tree.give_clear(); },
          [&](int) {
            give_all();
            return tree.give_clear();
          });
      if (const uint64_t left = tree.wait_active_blocks(); left != 0)
        throw Error(ErrorCode::kInternal, fmt::format("{} of {} blocks are left active", left, blocks));
      Row row = make_row(name, "ns/block", 1e9 * seconds / blocks,
                         1e9 * floor_s(bytes_per_block * blocks) / blocks);
      row.detail = fmt::format("{:.0f} blocks of 8^2 floats", blocks);
      add_taichi(row, name);
      report_.add(row);
    };
    add("activate_clear_gc", kBlockBytes + 2 * kHeadBytes, [&] { tree.give_activation(0); });
    add("fill_clear_gc", 2 * (kBlockBytes + kHeadBytes), [&] { tree.give_writes(0, false); });
  }
  void add_taichi(Row& row, const std::string& name) {
    if (name == "activate_clear_gc") row.target = ours_at_most(1);
    std::vector<double> seconds;
    for (int run = 0; run <= sizes_.times.runs; ++run) {
      const std::optional<double> once = taichi_.ask("time " + name, "seconds");
      if (once && run > 0) seconds.push_back(*once);
    }
    if (taichi_.is_there())
      row.peer = 1e9 * median(seconds) / (static_cast<double>(sizes_.blocks) * sizes_.blocks);
    row.peer_name = taichi_.name();
  }

  // Squares that are empty are filled one after another.
  void run_activations() {
    SquaresTree tree(device_, sizes_.blocks, sizes_.squares);
    const auto blocks = static_cast<double>(tree.blocks_per_square());
    const uint64_t all = tree.blocks_per_square() * static_cast<uint64_t>(tree.num_squares());
    const DeviceRuns times{sizes_.times.runs, tree.num_squares()};
    const auto add = [&](const std::string& name, bool scattered, double bytes_per_block) {
      const double seconds = device_seconds(
          *device_, times, [&] { tree.give_clear(); },
          [&](int square) { return tree.give_writes(square, scattered); });
      const uint64_t active = tree.wait_active_blocks();
      if (active != all || !tree.wait_is_written(tree.num_squares() - 1))
        throw Error(ErrorCode::kInternal, fmt::format("{} of {} blocks are active and written", active, all));
      Row row = make_row(name, "activations/s", blocks / seconds, 1 / floor_s(bytes_per_block));
      row.detail = fmt::format("{} squares of {:.0f} blocks, 64 writes a block", tree.num_squares(), blocks);
      report_.add(row);
    };
    add("activations_coherent", false, kBlockBytes + kHeadBytes);
    add("activations_random", true, 2 * kSectorBytes * kLeafSide * kLeafSide + kHeadBytes);
    run_list(tree, all);
  }

  void run_list(SquaresTree& tree, uint64_t blocks) {
    const auto time = [&](bool with_list) {
      return device_seconds(
          *device_, sizes_.times, [] {},
          [&](int) {
            const AsyncValueRef<Chain> changed = tree.give_change();
            return with_list ? tree.give_list() : changed;
          });
    };
    const double change = time(false), both = time(true);
    Row row = make_row("list", "us", 1e6 * both, 1e6 * floor_s(static_cast<double>(blocks) * kListedBytes));
    row.detail = fmt::format("of {} leaves, after one block changed; the change alone: {:.4g} us", blocks,
                             1e6 * change);
    report_.add(row);
  }

  Report& report_;
  IntrusivePtr<Device> device_;
  GpuSizes sizes_;
  SparsePeer taichi_;
  WarpPeer warp_;
  double copy_ = 1e9;  // bytes per second, once it is measured
};

}  // namespace

void run_gpu(Report& report) { GpuRows(report, Device::named(report.options().device)).run(); }

}  // namespace coppice::bench
