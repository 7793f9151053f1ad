// Launches that are recorded and replayed do what they do one by one, whatever
// happens to the topology on the way.
#include "sparse/launch_run.h"

#include <fmt/format.h>

#include "core/error.h"
#include "gpu/host_access.h"
#include "launch_run.kernels.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/test_devices.h"
#include "tests/sparse/traced.h"

namespace coppice {
namespace {

// Walkers on a line leave traces, which are smoothed, and visit lists; half a round behind them all is swept
// away. Every step leaves two sums of what there is.
class Walkers {
 public:
  static constexpr int kWalkers = 40, kBlock = 64, kBlocks = 24, kCells = kBlock * kBlocks, kMostSteps = 64;
  static constexpr int kListCells = 32;

  Walkers(IntrusivePtr<Device> device, bool masked)
      : device_(device),
        program_(device),
        tree_(device),
        at_(device->reserve(kWalkers * 4, kWalkers * 4)),
        sums_(device->reserve(16, 16)),
        kept_(device->reserve(16 * kMostSteps, 16 * kMostSteps)),
        steps_(device->reserve(8, 8)) {
    // Cells of 64 KiB each: an allocator begins with two, and must grow again and again.
    block_ = tree_.root().pointer({kBlocks});
    leaf_ = masked ? block_->bitmasked({4}).bitmasked({kBlock / 4}) : block_->dense({kBlock});
    pad_ = block_->dense({16384}).place<int>("pad");
    x_ = leaf_->place<int>("x"), y_ = leaf_->place<int>("y");
    lists_ = tree_.root().pointer({kCells / kListCells}).dynamic(4096, 16);
    visits_ = lists_->place<int>("visits");
    std::vector<int> at(kWalkers);
    for (int i = 0; i < kWalkers; ++i) at[i] = i * 7 % kCells;
    device->wait_copy(at_->data(), at.data(), kWalkers * 4);
    device->set_seed(11);
  }

  std::vector<BoundLaunch> launches() {
    int* const at = at_->as<int>();
    auto* const sums = sums_->as<uint64_t>();
    const int* const where = at;
    return {program_.bind(walk, range(kWalkers), at, int{kCells}),
            program_.bind(leave_trace, range(kWalkers), x_, where),
            program_.bind(smooth, over(*leaf_), x_, y_),
            program_.bind(note_visit, range(kWalkers), visits_, where, int{kListCells}),
            program_.bind(sum_cells, over(*leaf_), y_, sums),
            program_.bind(sum_visits, over(*lists_), visits_, sums + 1),
            program_.bind(sweep, range(kWalkers), block_->topology(), visits_, where, int{kCells},
                          int{kBlock}, int{kListCells}),
            program_.bind(keep_sums, range(1), sums, kept_->as<uint64_t>(), steps_->as<uint64_t>())};
  }

  // Returns the sums of each step; the rest is zero.
  std::vector<uint64_t> sums() {
    program_.wait();
    std::vector<uint64_t> kept(2 * kMostSteps);
    device_->wait_copy(kept.data(), kept_->data(), 16 * kMostSteps);
    kept.push_back(block_->wait_num_active_cells());
    kept.push_back(leaf_->wait_num_active_blocks());
    kept.push_back(lists_->wait_num_active_blocks());
    return kept;
  }
  Tree& tree() { return tree_; }
  Node block() { return *block_; }

 private:
  IntrusivePtr<Device> device_;
  Program program_;
  Tree tree_;
  std::optional<Node> block_, leaf_, lists_;
  Field<int> x_, y_, pad_, visits_;
  IntrusivePtr<Buffer> at_, sums_, kept_, steps_;
};

class LaunchRuns : public DeviceTest {
 protected:
  std::vector<uint64_t> one_by_one(bool masked, int steps) {
    // Random numbers go by a stream's launches: a device of its own.
    std::string reason;
    Walkers walkers(test_device(GetParam(), reason), masked);
    const std::vector<BoundLaunch> launches = walkers.launches();
    for (int i = 0; i < steps; ++i) {
      for (const BoundLaunch& launch : launches) launch.launch();
    }
    return walkers.sums();
  }
};

// Seen to fail: without the check of the version on the device (lists of the first replay in all of
// them), without replayed_from (the same random steps in every replay), with launches behind one
// that ran out of cells that are not skipped, without neighbour tables of their own, and when the
// host did not look at what replays did.
TEST_P(LaunchRuns, GiveWhatTheirLaunchesGiveOneByOne) {
  for (const bool masked : {false, true}) {
    const int steps = is_emulated() ? 12 : 60;
    const std::vector<uint64_t> expected = one_by_one(masked, steps);
    ASSERT_NE(expected[2 * steps - 1], 0u);
    std::string reason;
    Walkers walkers(test_device(GetParam(), reason), masked);
    Function function = traced(walkers.launches());
    finish(function.run(1));
    finish(function.run(steps - 3));
    function.run(0);
    finish(function.run(2));
    EXPECT_EQ(walkers.sums(), expected) << (masked ? "masked" : "dense");
  }
}

TEST_P(LaunchRuns, GoOnAfterLaunchesOfTheirOwnAndTrimming) {
  const int steps = is_emulated() ? 6 : 30;
  const std::vector<uint64_t> expected = one_by_one(true, steps);
  std::string reason;
  Walkers walkers(test_device(GetParam(), reason), true);
  const std::vector<BoundLaunch> launches = walkers.launches();
  Function function = traced(launches);
  finish(function.run(steps / 3));
  walkers.tree().trim();
  for (int i = steps / 3; i < 2 * steps / 3; ++i) {
    for (const BoundLaunch& launch : launches) launch.launch();
  }
  finish(function.run(steps - 2 * (steps / 3)));
  EXPECT_EQ(walkers.sums(), expected);
}

// A list is up to date and gets more room, elsewhere, for a recording. Seen to fail when it was not made anew
// there, and when lists of trees that stay as they are were not looked at before the replays.
TEST_P(LaunchRuns, FindListsThatWereMadeBefore) {
  Tree tree(device);
  Node block = tree.root().pointer({4096}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  std::vector<std::array<int32_t, 3>> coords;
  for (int i = 0; i < 100; ++i) coords.push_back({40 * i, 0, 0});
  finish(leaf.activate(coords));
  run(fill_with_coordinates, over(leaf), x);
  auto sum = device->reserve(8, 8);
  const BoundLaunch launch = program().bind(sum_cells, over(leaf), x, sum->as<uint64_t>());
  const auto take = [&] {
    uint64_t taken = 0, none = 0;
    device->wait_copy(&taken, sum->data(), 8);
    device->wait_copy(sum->data(), &none, 8);
    return taken;
  };
  finish(launch.launch());
  const uint64_t expected = take();
  EXPECT_NE(expected, 0u);
  // One function has a tree that nothing in it changes, the other one that may change.
  Function function = traced({launch}), changing = traced({bind_deactivate_all(block), launch});
  finish(function.run());
  EXPECT_EQ(take(), expected);
  finish(leaf.activate({{7, 0, 0}}));
  run(fill_with_coordinates, over(leaf), x);
  finish(function.run(2));
  EXPECT_GT(take(), 2 * expected);
  finish(changing.run());
  EXPECT_EQ(take(), 0u);
  finish(function.run());
  EXPECT_EQ(take(), 0u);
}

TEST_P(LaunchRuns, DeactivateAllAndActivateAnew) {
  const int steps = is_emulated() ? 4 : 20;
  std::string reason;
  std::vector<uint64_t> sums[2];
  for (const bool as_function : {false, true}) {
    Walkers walkers(test_device(GetParam(), reason), true);
    std::vector<BoundLaunch> launches = walkers.launches();
    launches.push_back(bind_deactivate_all(walkers.tree().root()));
    if (as_function) {
      finish(traced(launches).run(steps));
    } else {
      for (int i = 0; i < steps; ++i) {
        for (const BoundLaunch& launch : launches) launch.launch();
      }
    }
    sums[as_function] = walkers.sums();
    EXPECT_EQ(walkers.block().wait_num_active_cells(), 0u);
  }
  EXPECT_EQ(sums[1], sums[0]);
}

// Seen to fail when the first launch of the recording was taken for the one that failed.
TEST_P(LaunchRuns, FailAsTheLaunchThatFailed) {
  Tree tree(device);
  Node list = tree.root().dynamic(10, 16);
  Field<int> x = list.place<int>("x");
  auto count = device->reserve(16, 16);
  auto* const counts = count->as<uint64_t>();
  Function function =
      traced({program().bind(count_up, range(1), counts), program().bind(append_more, range(1), x, 3),
              program().bind(count_up, range(1), counts + 1)});
  const AsyncValueRef<Chain> done = function.run(7);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange);
  EXPECT_NE(std::string(done.error().what()).find("kernel launch_run.append_more: field 'x'"),
            std::string::npos)
      << done.error().what();
  device->default_stream().clear_error();
  uint64_t counted[2];
  device->wait_copy(counted, counts, 16);
  EXPECT_EQ(counted[0], 4u);
  EXPECT_EQ(counted[1], 3u) << "of the fourth round, what is behind the failure does not run";
  finish(list.deactivate_all());
  finish(function.run(2));
  EXPECT_EQ(list.wait_length({0}), 6u);
}

TEST_P(LaunchRuns, OutOfMemoryIsAnErrorAndTheTreeStaysReadable) {
  Tree tree(device, {.name = "small", .max_bytes = 64 << 10});
  Node list = tree.root().dynamic(1 << 20, 1024);
  Field<int> x = list.place<int>("x");
  Function function = traced({program().bind(append_more, range(1), x, 1000)});
  const AsyncValueRef<Chain> done = function.run(100);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory) << done.error().what();
  device->default_stream().clear_error();
  EXPECT_GT(list.wait_length({0}), 10000u);
}

INSTANTIATE_TEST_SUITE_P(Sparse, LaunchRuns, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
