// Arguments that outlive the call: slots, and what a launch that is given again and again uses of them;
// buffers, which their launches keep.
#include "sparse/slot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "function.kernels.h"
#include "gpu/host_access.h"
#include "sparse/function.h"
#include "sparse/uses.h"
#include "tests/sparse/refusal.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class Slots : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    tree_.emplace(device, TreeOptions{.name = "line"});
    leaf_ = tree_->root().pointer({64}).bitmasked({16});
    x_ = leaf_->place<int>("x");
    finish(leaf_->activate({{0}, {1}, {2}, {40}}));
  }
  void TearDown() override {
    leaf_.reset(), tree_.reset();
    DeviceTest::TearDown();
  }
  std::vector<int> values() {
    return {wait_read(x_, {0}), wait_read(x_, {1}), wait_read(x_, {2}), wait_read(x_, {40})};
  }

  std::optional<Tree> tree_;
  std::optional<Node> leaf_;
  Field<int> x_;
};

TEST_P(Slots, AreReadWhenTheLaunchRuns) {
  Slot<int> value(device, 3);
  const BoundLaunch bound = program().bind(set_to, over(*leaf_), x_, value);
  finish(bound.launch());
  EXPECT_EQ(values(), (std::vector{3, 3, 3, 3}));
  value.set(5);
  bound.launch();
  value.set(7);
  EXPECT_EQ(wait_read(x_, {40}), 5) << "what was given before is not concerned";
  program().launch(set_to, over(*leaf_), x_, value);
  EXPECT_EQ(wait_read(x_, {1}), 7);
  program().launch(set_to, over(*leaf_), x_, 9);
  EXPECT_EQ(wait_read(x_, {1}), 9) << "a plain argument of the same kernel";
}

TEST_P(Slots, StandBesidePlainArgumentsOfAnySize) {
  const CoppiceForce first{{1, 2, 3}, 1.0}, second{{10, 20, 30}, 2.0};
  Slot<CoppiceForce> force(device, first);
  Slot<int> weight(device, 1);
  Slot<float> factor(device, 0.5f);
  program().launch(set_to, over(*leaf_), x_, 0);
  program().launch(push_cells, over(*leaf_), x_, force, 2);
  EXPECT_EQ(values(), (std::vector{2, 4, 6, 4}));
  const BoundLaunch both = program().bind(push_cells, over(*leaf_), x_, force, weight);
  both.launch();
  EXPECT_EQ(values(), (std::vector{3, 6, 9, 6}));
  force.set(second), weight.set(-1);
  both.launch();
  EXPECT_EQ(values(), (std::vector{-14, -28, -42, -28}));
  program().launch(scale_cells, over(*leaf_), x_, 3, factor);
  EXPECT_EQ(values(), (std::vector{-21, -42, -63, -42}));
  Slot<int> by(device, 2);
  program().launch(scale_cells, over(*leaf_), x_, by, 1.0f);
  EXPECT_EQ(wait_read(x_, {2}), -126);
}

// The launches wait behind a gate until their buffer is nobody else's.
TEST_P(Slots, ABufferLivesAsLongAsItsLaunches) {
  constexpr size_t kItems = 5000;
  const IntrusivePtr<Buffer> to = wait_device_copy(*device, std::vector<uint32_t>(kItems));
  std::atomic<bool> is_open = false;
  device->default_stream().enqueue("gate", [&](InStream&) {
    while (!is_open) std::this_thread::yield();
  });
  IntrusivePtr<Buffer> from = wait_device_copy(*device, std::vector<uint32_t>(kItems, 7));
  program().launch(copy_viewed, range(int64_t{kItems}), *to, *from);
  const BoundLaunch again = program().bind(copy_viewed, range(int64_t{kItems}), *to, *from);
  const Function f =
      trace(device, [&] { program().launch(copy_viewed, range(int64_t{kItems}), *to, *from); });
  const std::byte* const at = from->data();
  from.reset();
  std::vector<IntrusivePtr<Buffer>> others;  // some in its place, if it was free
  for (int i = 0; i < 20; ++i) others.push_back(wait_device_copy(*device, std::vector<uint32_t>(kItems, 9)));
  for (const IntrusivePtr<Buffer>& other : others) EXPECT_NE(other->data(), at);
  const auto expect_sevens = [&] {
    program().wait();
    std::vector<uint32_t> got(kItems);
    device->wait_copy(got.data(), to->data(), kItems * sizeof(uint32_t));
    EXPECT_EQ(got, std::vector<uint32_t>(kItems, 7));
    got.assign(kItems, 1);
    device->wait_copy(to->data(), got.data(), kItems * sizeof(uint32_t));
  };
  is_open = true;
  expect_sevens();
  again.launch();
  expect_sevens();
  f.run();
  expect_sevens();
}

TEST_P(Slots, HoldEigensTypesAsKernelsTakeThem) {
  const Slot<Vec3f> by(device, Vec3f(1, 2, 3));
  program().launch(set_to, over(*leaf_), x_, 0);
  const Function f = trace(device, [&] { program().launch(push_by_vector, over(*leaf_), x_, by); });
  f.run();
  by.set(Vec3f(4, 0, 1));
  f.run();
  EXPECT_EQ(values(), (std::vector(4, 321 + 104)));
}

TEST_P(Slots, ChangeWhatAFunctionDoesFromRunToRun) {
  Slot<int> value(device, 1), weight(device, 1);
  const Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, value);
    repeat(3, [&] { program().launch(push_cells, over(*leaf_), x_, CoppiceForce{{1, 1, 1}, 1.0}, weight); });
  });
  f.run();
  EXPECT_EQ(wait_read(x_, {0}), 4);
  value.set(10);
  f.run();
  weight.set(5);
  f.run(2);
  EXPECT_EQ(wait_read(x_, {0}), 25);
}

TEST_P(Slots, AreReadByLoopsOverBoxesAndRangesThatGrow) {
  Slot<int> value(device, 4);
  program().launch(set_to, over_box(*leaf_, {100}, {300}), x_, value);
  EXPECT_EQ(wait_read(x_, {299}), 4);
  std::vector<int> at(800);
  std::iota(at.begin(), at.end(), 0);
  const auto where = wait_device_copy(*device, at);
  const int* const places = where->as<int>();
  const BoundLaunch grow = program().bind(grow_at_all, range(800), x_, places, value);
  value.set(6);
  finish(grow.launch());
  EXPECT_EQ(wait_read(x_, {799}), 6);
  EXPECT_EQ(leaf_->wait_num_active_cells(), 800u);
  // Room is made first for what must not happen twice: with the value that the launch will have.
  const auto count = device->reserve(4, 4);
  Slot<int> stride(device, 1);
  tree_->deactivate_all();
  const BoundLaunch once =
      program().bind(bump_or_grow, range(500), x_, places, count->as<uint32_t>(), stride);
  stride.set(2);
  finish(once.launch());
  uint32_t counted = 0;
  device->wait_copy(&counted, count->data(), 4);
  EXPECT_EQ(counted, 500u);
  EXPECT_TRUE(leaf_->wait_is_active({998}));
  EXPECT_FALSE(leaf_->wait_is_active({997}));
}

TEST_P(Slots, AreMemoryThatALaunchReads) {
  Slot<int> value(device, 3);
  EXPECT_NE(program().explain(set_to, over(*leaf_), x_, value).find("  reads the slot of argument 2\n"),
            std::string::npos)
      << program().explain(set_to, over(*leaf_), x_, value);
  // With the checks that look at every access, too.
  CodegenOptions checks;
  checks.checks = true;
  Program checked(device, checks);
  finish(checked.launch(push_cells, over(*leaf_), x_, Slot<CoppiceForce>(device, {{1, 1, 1}, 1.0}), value));
  EXPECT_EQ(wait_read(x_, {0}), 3);
}

TEST_P(Slots, OutliveNothingThatUsesThem) {
  std::optional<Slot<int>> value(std::in_place, device, 3);
  const BoundLaunch bound = program().bind(set_to, over(*leaf_), x_, *value);
  const Function f = trace(device, [&] { bound.launch(); });
  const Slot<int> copy = *value;
  value.reset();
  copy.set(8);
  finish(bound.launch());
  EXPECT_EQ(wait_read(x_, {0}), 8);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Slots, testing::ValuesIn(test_devices()), device_test_name);

TEST(Slot, OfAnotherDeviceOrMovedFromIsRefused) {
  const auto one = Device::cpu(1), other = Device::cpu(1);
  Program program(one);
  Tree tree(one);
  Node leaf = tree.root().dense({8});
  Field<int> x = leaf.place<int>("x");
  EXPECT_EQ(refusal([&] { program.launch(set_to, over(leaf), x, Slot<int>(other, 3)); }),
            "kernel function.set_to: the slot of argument 2 is in memory of another device");
  Slot<int> mine(one, 3);
  const Slot<int> taken = std::move(mine);
  EXPECT_EQ(refusal([&] { program.launch(set_to, over(leaf), x, mine); }),
            "a Slot is used that was moved from");
  EXPECT_EQ(refusal([&] { mine.set(3); }), "a Slot is used that was moved from");
  EXPECT_EQ(refusal([] { Slot<int>(nullptr); }), "a slot without a device");
}

}  // namespace
}  // namespace coppice
