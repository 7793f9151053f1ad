// Deactivation: what goes, what stays, and what a cell holds when it comes back.
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C15_DeactivateRemovesExactlyOneLeaf) {
  Tree tree(device);
  Node block = tree.root().pointer({32}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, iota(128), 5);
  deactivate1(block, {7});
  EXPECT_EQ(count(count1, leaf), 124u);
  for (int i : {27, 28, 31, 32}) EXPECT_EQ(leaf.wait_is_active({i, 0, 0}), i / 4 != 7) << i;
}

TEST_P(Conformance, C16_DeactivatingInALoopOverTheSameNode) {
  Tree tree(device);
  Node block = tree.root().pointer({1024}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 5; ++round) {
    write1(x, iota(4096), 5);
    run(clear_parent1, over(block), block.topology());
    ASSERT_EQ(count(count1, leaf), 0u);
  }
}

TEST_P(Conformance, C17_ReactivatedCellsAreZeroButForWhatIsWritten) {
  for (const bool masked : {false, true}) {
    Tree tree(device);
    Node block = tree.root().pointer({32}), leaf = masked ? block.bitmasked({4}) : block.dense({4});
    Field<int> x = leaf.place<int>("x");
    write1(x, iota(128), 5);
    deactivate1(block, {7});
    EXPECT_EQ(read1(x, {27, 28, 29, 31, 32}), (std::vector<int>{5, 0, 0, 0, 5}));
    write1(x, {29}, 9);
    EXPECT_EQ(read1(x, {27, 28, 29, 31, 32}), (std::vector<int>{5, 0, 9, 0, 5}));
  }
}

// Seen to fail where only pointer and dynamic nodes below a dense one counted.
TEST_P(Conformance, AllBitmaskedCellsBelowADenseNodeAreDeactivated) {
  for (int nesting = 0; nesting < 3; ++nesting) {
    Tree tree(device);
    const Node top = tree.root().dense({4});
    const Node below = nesting == 0 ? top : nesting == 1 ? top.dense({2}) : top.bitmasked({2});
    const Node leaf = nesting == 2 ? below.dense({3}) : below.bitmasked({3});
    const Node other = tree.root().bitmasked({5});
    const Field<int> x = leaf.place<int>("x"), y = other.place<int>("y");
    write1(x, {1, 7, 11}, 5), write1(y, {2}, 6);
    finish(top.deactivate_all());
    for (const int i : {1, 7, 11}) EXPECT_FALSE(leaf.wait_is_active({i})) << nesting << ": " << i;
    EXPECT_EQ(read1(x, {1, 7, 11}), (std::vector<int>{0, 0, 0}));
    EXPECT_EQ(read1(y, {2}), std::vector<int>{6}) << "no node of its own";
    write1(x, {7}, 8);
    EXPECT_EQ(read1(x, {6, 7}), (std::vector<int>{0, 8})) << nesting;
  }
}

TEST_P(Conformance, C18_PingPongBetweenTwoTreesKeepsTheData) {
  Tree a_tree(device), b_tree(device);
  Node a_leaf = a_tree.root().pointer({16}).pointer({16}).dense({4}),
       b_leaf = b_tree.root().pointer({64}).dense({16});
  Field<int> a = a_leaf.place<int>("a"), b = b_leaf.place<int>("b");
  std::vector<int> coords;
  for (int i = 0; i < 1024; i += 3) coords.push_back(i);
  write1(a, coords, 11);
  for (int round = 0; round < 100; ++round) {
    program().launch(copy_to_tree1, over(a_leaf), a, b);
    a_tree.deactivate_all();
    program().launch(copy_to_tree1, over(b_leaf), b, a);
    finish(b_tree.deactivate_all());
  }
  const std::vector<int> got = read1(a, iota(1024));
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(got[i], i % 3 == 0 ? 11 : 0) << i;
}

// Seen to fail, as C21 and B2 were, when recycled cells did not recycle what lies below them.
TEST_P(Conformance, C19_DeactivatingALeafLeavesItsParentActive) {
  Tree tree(device);
  Node top = tree.root().pointer({8}), block = top.pointer({8}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, {0, 4, 33}, 1);
  finish(block.deactivate({{0, 0, 0}}));
  EXPECT_TRUE(top.wait_is_active({0, 0, 0}));
  EXPECT_EQ(top.wait_usage().active_cells, 2u);
  EXPECT_EQ(block.wait_usage().active_cells, 2u);
  finish(top.deactivate_all());
  EXPECT_EQ(block.wait_usage().active_cells, 0u) << "deactivate_all reaches what is below";
}

TEST_P(Conformance, C20_DeactivateAllOnBitmaskedNodes) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({8}).bitmasked({70});
  Field<int> x = leaf.place<int>("x");
  write1(x, {0, 69, 70, 559}, 6);
  EXPECT_EQ(count(count1, leaf), 4u);
  finish(tree.deactivate_all());
  EXPECT_EQ(count(count1, leaf), 0u);
  EXPECT_EQ(read1(x, {0, 69, 70, 559}), (std::vector<int>{0, 0, 0, 0}));
  write1(x, {1}, 6);
  EXPECT_EQ(read1(x, {0, 1}), (std::vector<int>{0, 6}));
}

}  // namespace
}  // namespace coppice
