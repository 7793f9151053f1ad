// Where memory is mapped before a launch, lists are given the chunks that it will want; where the launch then
// does not run, or does not append, they are as they were.
#include "core/error.h"
#include "effects.kernels.h"
#include "sparse/bulk_append.h"
#include "sparse/read_back.h"
#include "tests/sparse/conformance_fixture.h"
#include "tests/sparse/traced.h"

namespace coppice {
namespace {

using RoomOfLists = Conformance;

uint64_t chunks_of(uint64_t length, uint64_t chunk_cells) { return (length + chunk_cells - 1) / chunk_cells; }

// Seen to keep the chunks that were linked for a launch that then had too little memory for all of them.
TEST_P(RoomOfLists, ARecordedLaunchWithoutMemoryLeavesNoEmptyChunks) {
  Tree tree(device, {.name = "small", .max_bytes = 96 << 10});
  Node lists = tree.root().pointer({64}).dynamic(1 << 20, 256);
  Field<int> v = lists.place<int>("v");
  Function function = traced({program().bind(append_to_one_each, range(32 << 10), v, 4)});
  const auto done = function.run(1);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory) << done.error().what();
  device->default_stream().clear_error();
  uint64_t chunks = 0;
  for (int k = 0; k < 4; ++k) chunks += chunks_of(lists.wait_length({k, 0, 0}), 256);
  EXPECT_EQ(lists.wait_usage().active_cells, chunks) << "chunks that hold nothing";
  wait(lists.deactivate_all());
  run(append_to_one_each, range(400), v, 4);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(wait_read_list(v, k).size(), 100u) << k;
}

// A launch that activates and does not append, on a tree with a list whose chunks go on behind its end: seen
// to hide them, so that a bulk append linked others in their place.
TEST_P(RoomOfLists, ChunksBehindAListsEndAreFilledByABulkAppend) {
  Tree tree(device, {.name = "both"});
  Node lists = tree.root().dense({1}).dynamic(1 << 20, 16);
  Field<int> v = lists.place<int>("v");
  Node block = tree.root().pointer({512}).dense({1024});
  block.place<int>("x");
  launch_and_wait(program(), set_far_and_grow, range(1), v, block.topology(), 100'000);
  device->default_stream().clear_error();  // where no room was made for it
  uint32_t counter = 0;
  run(count_and_grow, range(is_emulated() ? 64 : 256), block.topology(), 1024, inout(counter));
  const uint64_t before = lists.wait_length({0, 0, 0});
  std::vector<int> ones(40, 1);
  std::vector<std::array<int32_t, 3>> zeros(ones.size(), {0, 0, 0});
  const auto values = wait_device_copy(*device, ones);
  const auto coords = wait_device_copy(*device, zeros);
  finish(append(v, coords->as<int32_t>(), values->as<int>(), ones.size()));
  EXPECT_EQ(lists.wait_length({0, 0, 0}), before + ones.size());
  uint32_t found = 0, sum = 0;
  run(count_elements1, over(lists), v, inout(found), inout(sum));
  EXPECT_EQ(found, before + ones.size());
  EXPECT_EQ(sum, ones.size() + (before > 0 ? 1 : 0));
  finish(lists.deactivate_all());
  EXPECT_EQ(lists.wait_usage().active_cells, 0u);
}

TEST_P(RoomOfLists, MoreThanThereCanEverBeIsRefused) {
  Tree tree(device);
  Node lists = tree.root().dense({1}).dynamic(1 << 20, 16);
  lists.place<int>("v");
  for (const uint64_t cells : {~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 33}) {
    const auto done = lists.reserve(cells);
    wait(done);
    ASSERT_TRUE(done.is_error()) << cells;
    EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
    device->default_stream().clear_error();
  }
}

// Seen to lose elements of a later bulk append, and to write others to one place.
TEST_P(RoomOfLists, ALaunchThatFaultsLeavesThemAsTheyWere) {
  if (!is_emulated()) GTEST_SKIP() << "only the emulated GPU goes on after a fault";
  Tree tree(device, {.name = "faults"});
  Node lists = tree.root().dense({1}).dynamic(1 << 16, 16);
  Field<int> v = lists.place<int>("v");
  const auto small = device->reserve(64, 64);
  const auto append_some = [&](size_t n) {
    const auto values = wait_device_copy(*device, std::vector<int>(n, 1));
    const auto coords = wait_device_copy(*device, std::vector<std::array<int32_t, 3>>(n, {0, 0, 0}));
    finish(append(v, coords->as<int32_t>(), values->as<int>(), n));
  };
  Program unchecked(device, {.checks = false});  // checks refuse what faults
  const BoundLaunch bound = unchecked.bind(fault_then_append, range(64), v, small->as<int>());
  Function function = traced({bound});
  append_some(3);
  size_t length = 3;
  for (const bool is_recorded : {false, true}) {
    const auto done = is_recorded ? function.run(2) : bound.launch();
    wait(done);
    ASSERT_TRUE(done.is_error());
    EXPECT_NE(std::string(done.error().what()).find("touches memory of no buffer"), std::string::npos)
        << done.error().what();
    device->default_stream().clear_error();
    for (const size_t n : {size_t{40}, size_t{100}}) {
      append_some(n);
      EXPECT_EQ(wait_read_list(v, 0), std::vector<int>(length += n, 1)) << is_recorded;
    }
    EXPECT_EQ(lists.wait_usage().active_cells, chunks_of(length, 16));
  }
}

// Seen before: every later launch was skipped without a word, for a status that was another's.
TEST_P(RoomOfLists, ALaunchThatFaultsLeavesNoStatus) {
  if (!is_emulated()) GTEST_SKIP() << "only the emulated GPU goes on after a fault";
  Tree tree(device, {.name = "faults"});
  const Node block = tree.root().pointer({64});
  const Field<int> x = block.dense({16}).place<int>("x");
  const auto small = device->reserve(64, 64);
  Program unchecked(device, {.checks = false});
  const BoundLaunch bound = unchecked.bind(miss_then_fault, range(4), x, small->as<int>());
  Function function = traced({bound});
  int at = 1;
  for (const bool is_recorded : {false, true}) {
    const auto done = is_recorded ? function.run(2) : bound.launch();
    wait(done);
    EXPECT_TRUE(done.is_error());
    device->default_stream().clear_error();
    uint32_t counter = 0;
    run(count_and_grow, range(at), block.topology(), 16, inout(counter));
    EXPECT_EQ(counter, static_cast<uint32_t>(at)) << is_recorded;
    ++at;
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, RoomOfLists, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
