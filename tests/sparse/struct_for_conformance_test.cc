// Loops over the active cells of a node (struct-for).
#include <algorithm>

#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C50_LoopsOfEveryDepthAndDimension) {
  Tree one(device), two(device), three(device), k_only(device);
  Node n1 = one.root().dense({5}), n2 = two.root().pointer({2, 3}).dense({1, 2}).dense({3, 1}).dense({2, 2});
  Node n3 =
      three.root().pointer({2, 2, 2}).pointer({2, 2, 2}).dense({2, 2, 2}).dense({1, 1, 1}).dense({3, 3, 3});
  Node nk = k_only.root().pointer({Axis::k}, {9}).dense({Axis::k}, {3});
  Field<int> x1 = n1.place<int>("x"), x2 = n2.place<int>("x");
  n3.place<int>("x");
  Field<int> xk = nk.place<int>("x");
  EXPECT_EQ(count(count1, n1), 5u);
  write2(x2, {0, 0, 11, 11}, 1);
  EXPECT_EQ(count(count2, n2), 2u * 24u);
  finish(n3.activate({{0, 0, 0}, {23, 23, 23}, {1, 2, 3}}));
  EXPECT_EQ(count(count3, n3), 2u * 216u);
  write1(xk, {26, 0}, 1);
  EXPECT_EQ(count(count1, nk), 6u);
}

TEST_P(Conformance, C51_ExtentsThatAreNoPowersOfTwo) {
  Tree tree(device);
  Node leaf = tree.root().dense({3, 8}).pointer({5, 1}).dense({7, 7});
  Field<int> x = leaf.place<int>("x");
  write2(x, {0, 0, 104, 55, 34, 48, 35, 49}, 1);
  EXPECT_EQ(count(count2, leaf), 4u * 49u);
  run(set_coordinate2, over(leaf), x, 1000);
  EXPECT_EQ(read2(x, {0, 0, 104, 55, 34, 48, 41, 55, 42, 55}),
            (std::vector<int>{0, 104055, 34048, 41055, 0}));
}

TEST_P(Conformance, C52_LoopsOverAnIntermediateNode) {
  Tree tree(device);
  Node top = tree.root().pointer({8}), block = top.bitmasked({4}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, {0, 1, 4, 127}, 1);
  EXPECT_EQ(count(count1, top), 2u);
  EXPECT_EQ(count(count1, block), 3u);
  EXPECT_EQ(count(count1, leaf), 12u);
  std::vector<uint32_t> visits(32);
  run(mark_visits1, over(block), visits);
  std::vector<uint32_t> expected(32);
  expected[0] = expected[1] = expected[31] = 1;
  EXPECT_EQ(visits, expected);
}

TEST_P(Conformance, C53_BranchesInTheBodyWriteWhatTheySay) {
  for (const bool masked : {false, true}) {
    Tree tree(device);
    Node block = tree.root().pointer({8}), leaf = masked ? block.bitmasked({64}) : block.dense({64});
    Field<int> from = leaf.place<int>("from"), to = leaf.place<int>("to");
    std::vector<int> expected(512, 0);
    for (int i = 0; i < 512; i += 2) write1(from, {i}, i + 1), write1(to, {i}, -1);
    run(write_branching1, over(leaf), from, to);
    for (int i = 0; i < 512; i += 2) expected[i] = (i + 1) % 3 == 0 ? -1 : (i + 1) % 3 * 100 + i + 1;
    EXPECT_EQ(read1(to, iota(512)), expected) << (masked ? "bitmasked" : "dense");
  }
}

// Inactive cells hold zeros, and no kernel runs for them.
TEST_P(Conformance, C53_InactiveCellsDoNotDivideByZero) {
  Tree tree(device);
  Node leaf = tree.root().pointer({8}).bitmasked({64});
  Field<int> by = leaf.place<int>("by"), to = leaf.place<int>("to");
  write1(by, {3, 100}, 8);
  run(divide1, over(leaf), by, to);
  EXPECT_EQ(read1(to, {3, 100, 4}), (std::vector<int>{125, 125, 0}));
}

TEST_P(Conformance, C55_FiveLevelsGiveExactCoordinates) {
  const int per_level = is_emulated() ? 2 : 4;  // four by four: 1024^2 cells
  const int side = per_level * per_level * per_level * per_level * per_level, span = side / per_level;
  Tree tree(device);
  Node leaf = tree.root()
                  .pointer({per_level, per_level})
                  .dense({per_level, per_level})
                  .dense({per_level, per_level})
                  .dense({per_level, per_level})
                  .dense({per_level, per_level});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> corners;
  for (int i = 0; i < per_level; ++i) {
    for (int j = 0; j < per_level; ++j) corners.insert(corners.end(), {span * i, span * j});
  }
  write2(x, corners);
  std::vector<uint32_t> visits(static_cast<size_t>(side) * side);
  run(mark_visits2, over(leaf), visits, side);
  EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](uint32_t n) { return n == 1; }));
  run(set_coordinate2, over(leaf), x, side);
  uint64_t total = 0;
  run(sum2, over(leaf), x, inout(total));
  const uint64_t n = visits.size();
  EXPECT_EQ(total, n * (n - 1) / 2);
}

TEST_P(Conformance, C56_ALoopWritesToTheCellsThatItsValuesName) {
  Tree a_tree(device), b_tree(device);
  Node a_leaf = a_tree.root().pointer({16}).dense({16}), b_block = b_tree.root().pointer({256});
  Field<int> index = a_leaf.place<int>("index"), y = b_block.place<int>("y");
  for (int i = 0; i < 256; ++i) write1(index, {i}, (i * 37) % 256);
  run(scatter_to1, over(a_leaf), index, y);
  EXPECT_EQ(count(count1, b_block), 256u);
  const std::vector<int> got = read1(y, iota(256));
  for (int i = 0; i < 256; ++i) EXPECT_EQ(got[i], i + 1);
}

}  // namespace
}  // namespace coppice
