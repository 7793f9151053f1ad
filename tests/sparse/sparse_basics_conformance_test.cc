// Writing, reading, activating and asking: the basic behaviour of every node kind.
#include <algorithm>

#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C01_OneWriteActivatesTheWholeLeaf) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16}).dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {5, 60});
  EXPECT_EQ(count(count1, leaf), 16u);
}

TEST_P(Conformance, C02_TwoWritesInOneLeafCountOnce) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16}).dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {8, 15, 9});
  EXPECT_EQ(count(count1, leaf), 8u);
}

TEST_P(Conformance, C03_IsActiveRescalesToAncestors) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {21});
  for (int i = 0; i < 128; ++i) EXPECT_EQ(leaf.wait_is_active({i, 0, 0}), i / 8 == 2) << i;
  for (int b = 0; b < 16; ++b) EXPECT_EQ(block.wait_is_active({b, 0, 0}), b == 2) << b;
}

TEST_P(Conformance, C04_NodesOnDifferentAxes) {
  Tree tree(device);
  Node leaf = tree.root().dense({Axis::i}, {4}).pointer({Axis::j}, {6});
  Field<int> x = leaf.place<int>("x");
  write2(x, {1, 5, 3, 0}, 7);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j)
      EXPECT_EQ(leaf.wait_is_active({i, j, 0}), (i == 1 && j == 5) || (i == 3 && j == 0)) << i << ", " << j;
  }
  EXPECT_EQ(count(count2, leaf), 2u);
  EXPECT_EQ(read2(x, {1, 5, 3, 0, 1, 0}), (std::vector<int>{7, 7, 0}));
}

TEST_P(Conformance, C05_ReadingAnInactiveCellGivesZeroAndDoesNotActivate) {
  Tree tree(device);
  Node top = tree.root().pointer({8}), block = top.pointer({8}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {100}, 3);
  EXPECT_EQ(read1(x, {100, 101, 99, 511, 0}), (std::vector<int>{3, 0, 0, 0, 0}));
  EXPECT_EQ(top.wait_usage().active_cells, 1u);
  EXPECT_EQ(block.wait_usage().active_cells, 1u);
  EXPECT_EQ(count(count1, leaf), 8u);
}

TEST_P(Conformance, C06_ActivationWithoutAWriteMakesTheLeafIterable) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({8});
  leaf.place<int>("x");
  finish(block.activate({{3, 0, 0}, {9, 0, 0}}));
  EXPECT_EQ(count(count1, leaf), 16u);
}

TEST_P(Conformance, C07_NodesDescribedInAnyOrder) {
  Tree tree(device);
  Node a = tree.root().pointer({4}), b = tree.root().pointer({8});
  Node b_leaf = b.dense({2}), a_leaf = a.dense({4}), a_other = a.dense({4});
  Field<int> bx = b_leaf.place<int>("bx"), ay = a_other.place<int>("ay"), ax = a_leaf.place<int>("ax");
  write1(bx, {15}, 1), write1(ax, {3}, 2), write1(ay, {2}, 3);
  EXPECT_EQ(read1(bx, {15, 14, 3}), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(read1(ax, {3, 2}), (std::vector<int>{2, 0}));
  EXPECT_EQ(read1(ay, {3, 2}), (std::vector<int>{0, 3}));
  EXPECT_EQ(count(count1, a_leaf), 4u);
  EXPECT_EQ(count(count1, b_leaf), 2u);
}

TEST_P(Conformance, C08_ThreadsActivateDistinctLeaves) {
  const int n = scaled(100000);
  Tree tree(device);
  Node leaf = tree.root().pointer({n}).dense({8});
  Field<int> x = leaf.place<int>("x");
  run(write_every1, range(n), x, 8, 1);
  EXPECT_EQ(count(count1, leaf), 8u * static_cast<unsigned>(n));
  EXPECT_EQ(sum(leaf, x), static_cast<uint64_t>(n));
}

TEST_P(Conformance, C09_ManyThreadsPerLeafGiveExactSums) {
  const int n = scaled(512 * 512), wrap = std::min(512, n / 16 * 8);
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  run(write_wrapped1, range(n), x, wrap);
  EXPECT_EQ(block.wait_usage().active_cells, static_cast<uint64_t>(wrap / 8));
  run(add_at1, range(n), x, wrap);
  EXPECT_EQ(sum(leaf, x), static_cast<uint64_t>(n + wrap));
}

// Seen to fail on the emulated GPU, as C09, C42 and B2 were, when the swap that locks a slot was a plain
// store.
TEST_P(Conformance, C10_OneCellActivatedByEverybodyIsAllocatedOnce) {
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  run(write_wrapped1, range(scaled(100000)), x, 1);
  EXPECT_EQ(block.wait_usage().active_cells, 1u);
}

TEST_P(Conformance, C11_FilledThenClearedByALoopOverTheParentsTenTimes) {
  const int side = is_emulated() ? 16 : 128;
  Tree tree(device);
  Node block = tree.root().pointer({side, side}), leaf = block.dense({8, 8});
  Field<int> x = leaf.place<int>("x");
  std::vector<std::array<int32_t, 3>> all;
  for (int i = 0; i < side * side; ++i) all.push_back({i / side, i % side, 0});
  uint64_t capacity = 0;
  for (int round = 0; round < 10; ++round) {
    finish(block.activate(all));
    ASSERT_EQ(leaf.wait_num_active_blocks(), static_cast<uint64_t>(side * side));
    if (round == 1) capacity = block.wait_usage().capacity_cells;
    run(clear_parent2, over(block), block.topology());
    ASSERT_EQ(leaf.wait_num_active_blocks(), 0u);
  }
  EXPECT_EQ(block.wait_usage().capacity_cells, capacity);
}

TEST_P(Conformance, C12_SiblingContainersOfACellKeepTheirDataApart) {
  Tree tree(device);
  Node block = tree.root().pointer({8});
  Node a = block.dense({4}), b = block.bitmasked({4}), c = block.pointer({4});
  Field<int> x = a.place<int>("x"), y = b.place<int>("y"), z = c.place<int>("z");
  write1(x, {9}, 1), write1(y, {9}, 2), write1(z, {9}, 3);
  EXPECT_EQ(read1(x, {9, 8}), (std::vector<int>{1, 0}));
  EXPECT_EQ(read1(y, {9, 8}), (std::vector<int>{2, 0}));
  EXPECT_EQ(read1(z, {9, 8}), (std::vector<int>{3, 0}));
  EXPECT_EQ(count(count1, a), 4u);
  EXPECT_EQ(count(count1, b), 1u);
  EXPECT_EQ(count(count1, c), 1u);
  finish(block.deactivate({{2, 0, 0}}));
  EXPECT_EQ(read1(x, {9}), std::vector<int>{0});
  EXPECT_EQ(c.wait_usage().active_cells, 0u);
}

TEST_P(Conformance, C13_UsageCountsActiveCells) {
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {0, 100, 200, 300});
  const NodeUsage usage = block.wait_usage();
  EXPECT_EQ(usage.active_cells, 4u);
  EXPECT_GE(usage.capacity_cells, 4u);
  EXPECT_GT(usage.bytes, 4u * 32u);
}

TEST_P(Conformance, C14_FieldsOnAPointerNodeItself) {
  Tree tree(device);
  Node leaf = tree.root().pointer({8}).pointer({16});
  Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  write1(x, {0, 5, 6, 127}, 4);
  EXPECT_EQ(count(count1, leaf), 4u);
  run(double_on_pointer1, over(leaf), x, y);
  EXPECT_EQ(read1(y, {0, 5, 6, 127, 7}), (std::vector<int>{8, 8, 8, 8, 0}));
  run(neighbour_sum1, over(leaf), x, y);
  EXPECT_EQ(read1(y, {0, 5, 6, 127, 7}), (std::vector<int>{0, 4, 4, 0, 0}));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sparse, Conformance, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace coppice
