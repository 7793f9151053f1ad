// Launches given one by one to the cuda device on the fake driver (fake_gpu.h): what the host waits for
// between them. Nothing here runs on a GPU.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "function.kernels.h"
#include "messages.kernels.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/fake_gpu.h"
#include "tests/sparse/staging.h"

namespace coppice {
namespace {

using fake::FakeGpu;

class CudaLaunches : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    if (codegen_options().checks) GTEST_SKIP() << "launches with checks are waited for";
  }
  FakeGpu gpu{{.seed = GetParam()}};
  Program program{gpu.device};
};

// Activation of cells that are there, additions to cells that might not be, and launches that cannot fail.
// Break: a launch that is waited for.
TEST_P(CudaLaunches, OfASteadyStepAreNotWaitedFor) {
  Tree tree(gpu.device);
  const Node leaf = tree.root().pointer({8}).dense({4});
  const auto x = leaf.place<int>("x"), y = leaf.place<int>("y");
  const auto step = [&](int i) {
    program.launch(grow_at, range(1), x, 4 * (i % 3));
    program.launch(set_to, over(leaf), y, i);
    program.launch(add_cells, over(leaf), x, y);
  };
  for (int i = 0; i < 100; ++i) step(i);
  program.wait();
  const int waits = gpu.driver.calls("cuStreamSynchronize");
  for (int i = 0; i < 30; ++i) step(i);
  program.wait();
  EXPECT_EQ(gpu.driver.calls("cuStreamSynchronize"), waits);
  EXPECT_EQ(wait_read(y, {8}), 29 + 1);
}

// Breaks: launches behind one that has grown its tree that run on the lists of before, or are lost.
TEST_P(CudaLaunches, BehindOneThatGrowsFindWhatItHasActivated) {
  Tree tree(gpu.device);
  const Node leaf = tree.root().pointer({1024}).dense({4});
  const auto x = leaf.place<int>("x"), y = leaf.place<int>("y");
  // The first are of a tree that is waited for more and more; then it rests, so that they are not.
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) program.launch(grow_at, range(1), x, 4 * (round * 100 + i));
    for (int i = 0; i < 200; ++i) program.launch(grow_at, range(1), x, 4 * round * 100);
    gpu.driver.hold();
    program.launch(grow_at, range(1), x, 4 * (round * 100 + 50));
    program.launch(set_to, over(leaf), y, 7 + round);
    program.launch(grow_at, range(1), x, 4 * (round * 100 + 51));
    program.launch(add_cells, over(leaf), x, y);
    gpu.driver.release();
    program.wait();
    EXPECT_EQ(wait_read(y, {4 * (round * 100 + 50)}), 7 + round + 1);
    EXPECT_EQ(wait_read(y, {4 * (round * 100 + 51)}), 1);
    EXPECT_EQ(wait_read(y, {4 * round * 100}), 7 + round + 1);
  }
}

TEST_P(CudaLaunches, ThatFailAreNamedWhenOthersWereGivenBehindThem) {
  Tree tree(gpu.device, {.name = "sums"});
  const Node leaf = tree.root().pointer({8}).dense({4});
  const auto x = leaf.place<int>("x");
  Tree other(gpu.device);
  const Node others = other.root().pointer({8}).dense({4});
  const auto from = others.place<int>("from");
  program.launch(grow_at, range(1), x, 4);
  program.launch(grow_at, range(1), from, 4);
  program.launch(grow_at, range(1), from, 9);
  program.wait();
  gpu.driver.hold();
  const auto failed = program.launch(add_cells, over(others), from, x);
  const auto behind = program.launch(set_to, over(leaf), x, 9);
  gpu.driver.release();
  wait(failed), wait(behind);
  ASSERT_TRUE(failed.is_error() && behind.is_error());
  const std::string text = failed.error().what();
  EXPECT_NE(text.find("kernel function.add_cells: field 'x' on"), text.npos) << text;
  EXPECT_NE(text.find("accumulated into the inactive cell (8)"), text.npos) << text;
  EXPECT_EQ(text, behind.error().what());
  gpu.device->default_stream().clear_error();
  EXPECT_EQ(wait_read(x, {5}), 0);
  wait(program.launch(set_to, over(leaf), x, 9));
  EXPECT_EQ(wait_read(x, {5}), 9);
}

// Its repetition is the last that the stream is given. Break: what that uses is never let go.
TEST_P(CudaLaunches, ThatAreRepeatedLastLeaveNothing) {
  Tree tree(gpu.device);
  const auto x = tree.root().pointer({1 << 12}).dense({4}).place<int>("x");
  const auto at = gpu.device->reserve(4000, 4000);
  std::vector<int> places(1000);
  for (int i = 0; i < 1000; ++i) places[static_cast<size_t>(i)] = 4 * i;
  gpu.device->wait_copy(at->data(), places.data(), 4000);
  const auto done = program.launch(grow_at_all, range(1000), x, at->as<const int>(), 3);
  wait(done);
  EXPECT_FALSE(done.is_error());
}

// Breaks: messages of a launch that is repeated handed over at the mark of one before it, or never.
TEST_P(CudaLaunches, ThatAreRepeatedPrintOnce) {
  std::vector<std::string> lines, expected;
  gpu.device->set_message_handler([&](std::string_view line) { lines.emplace_back(line); });
  Tree tree(gpu.device);
  // Cells are large, so that the few that there is room for at first are soon too few.
  const Node leaf = tree.root().pointer({1 << 12, 1}).dense({4, 1024});
  const auto x = leaf.place<int>("x");
  tree.freeze();
  for (int round = 0; round < 2; ++round) {
    gpu.driver.hold();
    program.launch(say_index, range(1), 1);
    program.launch(grow_and_say, range(500 * (round + 1)), x);
    program.launch(say_index, range(1), 1);
    gpu.driver.release();
    program.wait();
    expected.emplace_back("item 0 says 0");
    for (int i = 0; i < 500 * (round + 1); ++i) expected.push_back(fmt::format("set {}", i));
    expected.emplace_back("item 0 says 0");
  }
  // The lines of two launches that end at once are sorted together.
  std::sort(lines.begin(), lines.end()), std::sort(expected.begin(), expected.end());
  EXPECT_EQ(lines, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaLaunches, testing::Range(uint64_t{1}, uint64_t{6}));

}  // namespace
}  // namespace coppice
