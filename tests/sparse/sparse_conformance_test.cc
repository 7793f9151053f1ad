// What other sparse-grid systems' test suites check, as far as it concerns dense, bitmasked and pointer nodes. The
// number in a test's name (C05) is the entry in the project's list of such checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "conformance.kernels.h"
#include "core/error.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice {
namespace {

class Conformance : public testing::Test {
 protected:
  IntrusivePtr<Device> device = Device::cpu(4);
  Program program{device};

  void finish(const AsyncValueRef<Chain>& done) {
    wait(done);
    if (done.is_error()) throw done.error();
  }
  template <class Kernel, class... Arguments>
  void run(const Kernel& kernel, const Loop& loop, const Arguments&... arguments) {
    finish(program.launch(kernel, loop, arguments...));
  }

  void write1(const Field<int>& x, std::vector<int> coords, int value = 1) {
    run(write_at1, range(static_cast<int64_t>(coords.size())), x, coords.data(), value);
  }
  void write2(const Field<int>& x, std::vector<int> coords, int value = 1) {
    run(write_at2, range(static_cast<int64_t>(coords.size() / 2)), x, coords.data(), value);
  }
  std::vector<int> read1(const Field<int>& x, std::vector<int> coords) {
    std::vector<int> out(coords.size());
    run(read_at1, range(static_cast<int64_t>(coords.size())), x, coords.data(), out.data());
    return out;
  }
  std::vector<int> read2(const Field<int>& x, std::vector<int> coords) {
    std::vector<int> out(coords.size() / 2);
    run(read_at2, range(static_cast<int64_t>(out.size())), x, coords.data(), out.data());
    return out;
  }
  template <class Kernel>
  uint64_t count(const Kernel& kernel, const Node& node) {
    uint64_t n = 0;
    run(kernel, over(node), &n);
    return n;
  }
  static std::vector<int> iota(int n) {
    std::vector<int> out(n);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
};

TEST_F(Conformance, C01_OneWriteActivatesTheWholeLeaf) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16}).dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {5, 60});
  EXPECT_EQ(count(count1, leaf), 16u);
}

TEST_F(Conformance, C02_TwoWritesInOneLeafCountOnce) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16}).dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {8, 15, 9});
  EXPECT_EQ(count(count1, leaf), 8u);
}

TEST_F(Conformance, C03_IsActiveRescalesToAncestors) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {21});
  for (int i = 0; i < 128; ++i) EXPECT_EQ(leaf.wait_is_active({i, 0, 0}), i / 8 == 2) << i;
  for (int b = 0; b < 16; ++b) EXPECT_EQ(block.wait_is_active({b, 0, 0}), b == 2) << b;
}

TEST_F(Conformance, C04_NodesOnDifferentAxes) {
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

TEST_F(Conformance, C05_ReadingAnInactiveCellGivesZeroAndDoesNotActivate) {
  Tree tree(device);
  Node top = tree.root().pointer({8}), block = top.pointer({8}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {100}, 3);
  EXPECT_EQ(read1(x, {100, 101, 99, 511, 0}), (std::vector<int>{3, 0, 0, 0, 0}));
  EXPECT_EQ(top.wait_usage().active_cells, 1u);
  EXPECT_EQ(block.wait_usage().active_cells, 1u);
  EXPECT_EQ(count(count1, leaf), 8u);
}

TEST_F(Conformance, C06_ActivationWithoutAWriteMakesTheLeafIterable) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({8});
  leaf.place<int>("x");
  finish(block.activate({{3, 0, 0}, {9, 0, 0}}));
  EXPECT_EQ(count(count1, leaf), 16u);
}

TEST_F(Conformance, C07_NodesDescribedInAnyOrder) {
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

TEST_F(Conformance, C08_ThreadsActivateDistinctLeaves) {
  Tree tree(device);
  Node leaf = tree.root().pointer({100000}).dense({8});
  Field<int> x = leaf.place<int>("x");
  run(write_every1, range(100000), x, 8, 1);
  EXPECT_EQ(count(count1, leaf), 800000u);
  uint64_t sum = 0;
  run(sum1, over(leaf), x, &sum);
  EXPECT_EQ(sum, 100000u);
}

TEST_F(Conformance, C09_ManyThreadsPerLeafGiveExactSums) {
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  run(write_wrapped1, range(512 * 512), x, 512);
  EXPECT_EQ(block.wait_usage().active_cells, 64u);
  run(add_at1, range(512 * 512), x, 512);
  uint64_t sum = 0;
  run(sum1, over(leaf), x, &sum);
  EXPECT_EQ(sum, 512u * 512u + 512u);
}

TEST_F(Conformance, C10_OneCellActivatedByEverybodyIsAllocatedOnce) {
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  run(write_wrapped1, range(100000), x, 1);
  EXPECT_EQ(block.wait_usage().active_cells, 1u);
}

TEST_F(Conformance, C11_FilledThenClearedByALoopOverTheParentsTenTimes) {
  Tree tree(device);
  Node block = tree.root().pointer({128, 128}), leaf = block.dense({8, 8});
  Field<int> x = leaf.place<int>("x");
  std::vector<std::array<int32_t, 3>> all;
  for (int i = 0; i < 128 * 128; ++i) all.push_back({i / 128, i % 128, 0});
  uint64_t capacity = 0;
  for (int round = 0; round < 10; ++round) {
    finish(block.activate(all));
    ASSERT_EQ(leaf.wait_num_active_blocks(), 128u * 128u);
    if (round == 1) capacity = block.wait_usage().capacity_cells;
    run(clear_parent2, over(block), block.topology());
    ASSERT_EQ(leaf.wait_num_active_blocks(), 0u);
  }
  EXPECT_EQ(block.wait_usage().capacity_cells, capacity);
}

TEST_F(Conformance, C12_SiblingContainersOfACellKeepTheirDataApart) {
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

TEST_F(Conformance, C13_UsageCountsActiveCells) {
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({8});
  Field<int> x = leaf.place<int>("x");
  write1(x, {0, 100, 200, 300});
  const NodeUsage usage = block.wait_usage();
  EXPECT_EQ(usage.active_cells, 4u);
  EXPECT_GE(usage.capacity_cells, 4u);
  EXPECT_GT(usage.bytes, 4u * 32u);
}

TEST_F(Conformance, C14_FieldsOnAPointerNodeItself) {
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

TEST_F(Conformance, C15_DeactivateRemovesExactlyOneLeaf) {
  Tree tree(device);
  Node block = tree.root().pointer({32}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, iota(128), 5);
  std::vector<int> gone{7};
  run(deactivate_at1, range(1), block.topology(), gone.data());
  EXPECT_EQ(count(count1, leaf), 124u);
  for (int i : {27, 28, 31, 32}) EXPECT_EQ(leaf.wait_is_active({i, 0, 0}), i / 4 != 7) << i;
}

TEST_F(Conformance, C16_DeactivatingInALoopOverTheSameNode) {
  Tree tree(device);
  Node block = tree.root().pointer({1024}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 5; ++round) {
    write1(x, iota(4096), 5);
    run(clear_parent1, over(block), block.topology());
    ASSERT_EQ(count(count1, leaf), 0u);
  }
}

TEST_F(Conformance, C17_ReactivatedCellsAreZeroButForWhatIsWritten) {
  for (const bool masked : {false, true}) {
    Tree tree(device);
    Node block = tree.root().pointer({32}), leaf = masked ? block.bitmasked({4}) : block.dense({4});
    Field<int> x = leaf.place<int>("x");
    write1(x, iota(128), 5);
    std::vector<int> gone{7};
    run(deactivate_at1, range(1), block.topology(), gone.data());
    EXPECT_EQ(read1(x, {27, 28, 29, 31, 32}), (std::vector<int>{5, 0, 0, 0, 5}));
    write1(x, {29}, 9);
    EXPECT_EQ(read1(x, {27, 28, 29, 31, 32}), (std::vector<int>{5, 0, 9, 0, 5}));
  }
}

TEST_F(Conformance, C18_PingPongBetweenTwoTreesKeepsTheData) {
  Tree a_tree(device), b_tree(device);
  Node a_leaf = a_tree.root().pointer({16}).pointer({16}).dense({4}),
       b_leaf = b_tree.root().pointer({64}).dense({16});
  Field<int> a = a_leaf.place<int>("a"), b = b_leaf.place<int>("b");
  std::vector<int> coords;
  for (int i = 0; i < 1024; i += 3) coords.push_back(i);
  write1(a, coords, 11);
  for (int round = 0; round < 100; ++round) {
    program.launch(copy_to_tree1, over(a_leaf), a, b);
    a_tree.deactivate_all();
    program.launch(copy_to_tree1, over(b_leaf), b, a);
    finish(b_tree.deactivate_all());
  }
  const std::vector<int> got = read1(a, iota(1024));
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(got[i], i % 3 == 0 ? 11 : 0) << i;
}

TEST_F(Conformance, C19_DeactivatingALeafLeavesItsParentActive) {
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

TEST_F(Conformance, C20_DeactivateAllOnBitmaskedNodes) {
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

TEST_F(Conformance, C24_ActivationsWithClearingBetweenReuseOneCell) {
  Tree tree(device);
  Node block = tree.root().pointer({1024}), leaf = block.dense({32768});  // 128 KiB: one cell at first
  leaf.place<int>("x");
  for (int i = 0; i < 200; ++i) {
    finish(block.activate({{i, 0, 0}}));
    finish(block.deactivate_all());
  }
  EXPECT_LE(block.wait_usage().capacity_cells, 2u);
}

TEST_F(Conformance, C28_FreeListsAreCompactedWhetherMoreOrLessThanHalfWasUsed) {
  for (const int used : {1, 50, 51, 99, 100}) {
    Tree tree(device);
    Node block = tree.root().pointer({1000}), leaf = block.dense({4});
    Field<int> x = leaf.place<int>("x");
    write1(x, iota(400), 1);
    finish(block.deactivate_all());  // 100 free cells
    std::set<int> expected;
    for (int round = 0; round < 6; ++round) {
      std::vector<int> coords;
      for (int i = 0; i < used; ++i)
        coords.push_back(4 * (i + 100 * round)), expected.insert(i + 100 * round);
      write1(x, coords, round + 1);
      ASSERT_EQ(block.wait_usage().active_cells, expected.size()) << used;
      std::vector<int> gone;
      for (int i = 0; i < used; i += 2) gone.push_back(i + 100 * round), expected.erase(i + 100 * round);
      run(deactivate_at1, range(static_cast<int64_t>(gone.size())), block.topology(), gone.data());
      ASSERT_EQ(block.wait_usage().active_cells, expected.size()) << used;
    }
    const std::vector<int> got = read1(x, iota(4000));
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(got[4 * i], expected.contains(i) ? i / 100 + 1 : 0) << used << " " << i;
      ASSERT_EQ(got[4 * i + 1], 0) << "a recycled cell was not zeroed";
    }
  }
}

struct Odd {
  unsigned char bytes[7];
};
TEST_F(Conformance, C29_RecycledCellsOfOddSizesAreZeroed) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({3});
  Field<int> x = leaf.place<int>("x");
  leaf.place<Odd>("odd");
  for (int round = 0; round < 4; ++round) {
    write1(x, iota(48), 7);
    finish(block.deactivate_all());
    write1(x, {0, 47}, 1);
    std::vector<int> expected(48, 0);
    expected[0] = expected[47] = 1;
    EXPECT_EQ(read1(x, iota(48)), expected);
    finish(block.deactivate_all());
  }
}

TEST_F(Conformance, C30_DeactivatingTwiceRecyclesOnce) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, iota(64), 1);
  std::vector<int> twice(1000, 3);
  run(deactivate_at1, range(1000), block.topology(), twice.data());
  EXPECT_EQ(block.wait_usage().active_cells, 15u);
  finish(block.deactivate_all());
  write1(x, iota(64), 1);
  EXPECT_EQ(block.wait_usage().active_cells, 16u);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 16u);
}

TEST_F(Conformance, C31_BitmaskedNodesOfOddSizesIterateWrittenCells) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({3, 6}).bitmasked({8, 8});
  Field<int> x = leaf.place<int>("x");
  write2(x, {0, 0, 23, 47, 7, 9, 8, 40});
  EXPECT_EQ(count(count2, leaf), 4u);
}

TEST_F(Conformance, C32_ABitmaskedParentActivatesADenseGroup) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({10}).dense({6});
  Field<int> x = leaf.place<int>("x");
  write1(x, {13, 59});
  EXPECT_EQ(count(count1, leaf), 12u);
}

TEST_F(Conformance, C33_NestedBitmaskedNodesCountCellsOneByOne) {
  Tree tree(device);
  Node parent = tree.root().bitmasked({10}), leaf = parent.bitmasked({6});
  Field<int> x = leaf.place<int>("x");
  write1(x, {13, 14, 59});
  EXPECT_EQ(count(count1, leaf), 3u);
  EXPECT_EQ(count(count1, parent), 2u);
}

TEST_F(Conformance, C34_TwoMillionBitsEveryThirtySecondSet) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({1024}).bitmasked({2048});
  Field<int> x = leaf.place<int>("x");
  run(write_every1, range(65536), x, 32, 1);
  EXPECT_EQ(count(count1, leaf), 65536u);
}

TEST_F(Conformance, C35_APrimeNumberOfContainers) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({80173}).bitmasked({3});
  Field<int> x = leaf.place<int>("x");
  run(write_every1, range(80173), x, 3, 1);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 80173u);
  EXPECT_EQ(count(count1, leaf), 80173u);
}

TEST_F(Conformance, C36_FullyActiveNodesOfTenByTen) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({10, 10}).bitmasked({10, 10});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> all;
  for (int i = 0; i < 10000; ++i) all.insert(all.end(), {i / 100, i % 100});
  write2(x, all);
  std::vector<uint32_t> visits(10000);
  run(mark_visits2, over(leaf), visits.data(), 100);
  EXPECT_EQ(visits, std::vector<uint32_t>(10000, 1));
}

TEST_F(Conformance, C37_DeactivatingOneBitClearsIt) {
  Tree tree(device);
  Node leaf = tree.root().pointer({4}).bitmasked({100});
  Field<int> x = leaf.place<int>("x");
  write1(x, {63, 64, 65}, 2);
  std::vector<int> gone{64};
  run(deactivate_at1, range(1), leaf.topology(), gone.data());
  EXPECT_TRUE(leaf.wait_is_active({63, 0, 0}));
  EXPECT_FALSE(leaf.wait_is_active({64, 0, 0}));
  EXPECT_TRUE(leaf.wait_is_active({65, 0, 0}));
  EXPECT_EQ(read1(x, {63, 64, 65}), (std::vector<int>{2, 0, 2}));
}

TEST_F(Conformance, C38_ChangesBetweenLoopsAreSeen) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({8}).bitmasked({8});
  Field<int> x = leaf.place<int>("x");
  std::vector<uint64_t> counts(20);
  for (int i = 0; i < 20; ++i) {
    run(write_every1, range(i + 1), x, 3, 1);
    program.launch(count1, over(leaf), &counts[i]);
  }
  wait(device->default_stream().barrier());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(counts[i], static_cast<uint64_t>(i + 1));
}

TEST_F(Conformance, C39_ChildrenBehindOtherFieldsAreListed) {
  Tree tree(device);
  Node block = tree.root().pointer({8});
  Field<double> own = block.place<double>("own");
  Node first = block.dense({3}), second = block.bitmasked({5});
  Field<int> a = first.place<int>("a"), b = second.place<int>("b");
  write1(b, {7, 39}, 3), write1(a, {23}, 4);
  EXPECT_EQ(count(count1, second), 2u);
  EXPECT_EQ(count(count1, first), 6u);
  uint64_t sum = 0;
  run(sum1, over(second), b, &sum);
  EXPECT_EQ(sum, 6u);
}

TEST_F(Conformance, C50_LoopsOfEveryDepthAndDimension) {
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

TEST_F(Conformance, C51_ExtentsThatAreNoPowersOfTwo) {
  Tree tree(device);
  Node leaf = tree.root().dense({3, 8}).pointer({5, 1}).dense({7, 7});
  Field<int> x = leaf.place<int>("x");
  write2(x, {0, 0, 104, 55, 34, 48, 35, 49}, 1);
  EXPECT_EQ(count(count2, leaf), 4u * 49u);
  run(set_coordinate2, over(leaf), x, 1000);
  EXPECT_EQ(read2(x, {0, 0, 104, 55, 34, 48, 41, 55, 42, 55}),
            (std::vector<int>{0, 104055, 34048, 41055, 0}));
}

TEST_F(Conformance, C52_LoopsOverAnIntermediateNode) {
  Tree tree(device);
  Node top = tree.root().pointer({8}), block = top.bitmasked({4}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, {0, 1, 4, 127}, 1);
  EXPECT_EQ(count(count1, top), 2u);
  EXPECT_EQ(count(count1, block), 3u);
  EXPECT_EQ(count(count1, leaf), 12u);
  std::vector<uint32_t> visits(32);
  run(mark_visits1, over(block), visits.data());
  std::vector<uint32_t> expected(32);
  expected[0] = expected[1] = expected[31] = 1;
  EXPECT_EQ(visits, expected);
}

TEST_F(Conformance, C53_BranchesInTheBodyWriteWhatTheySay) {
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
TEST_F(Conformance, C53_InactiveCellsDoNotDivideByZero) {
  Tree tree(device);
  Node leaf = tree.root().pointer({8}).bitmasked({64});
  Field<int> by = leaf.place<int>("by"), to = leaf.place<int>("to");
  write1(by, {3, 100}, 8);
  run(divide1, over(leaf), by, to);
  EXPECT_EQ(read1(to, {3, 100, 4}), (std::vector<int>{125, 125, 0}));
}

TEST_F(Conformance, C55_FiveLevelsOfFourByFourGiveExactCoordinates) {
  Tree tree(device);
  Node leaf = tree.root().pointer({4, 4}).dense({4, 4}).dense({4, 4}).dense({4, 4}).dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> corners;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) corners.insert(corners.end(), {256 * i, 256 * j});
  }
  write2(x, corners);
  std::vector<uint32_t> visits(1024 * 1024);
  run(mark_visits2, over(leaf), visits.data(), 1024);
  EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](uint32_t n) { return n == 1; }));
  run(set_coordinate2, over(leaf), x, 1024);
  uint64_t sum = 0;
  run(sum2, over(leaf), x, &sum);
  EXPECT_EQ(sum, (uint64_t{1} << 20) * ((uint64_t{1} << 20) - 1) / 2);
}

TEST_F(Conformance, C56_ALoopWritesToTheCellsThatItsValuesName) {
  Tree a_tree(device), b_tree(device);
  Node a_leaf = a_tree.root().pointer({16}).dense({16}), b_block = b_tree.root().pointer({256});
  Field<int> index = a_leaf.place<int>("index"), y = b_block.place<int>("y");
  for (int i = 0; i < 256; ++i) write1(index, {i}, (i * 37) % 256);
  run(scatter_to1, over(a_leaf), index, y);
  EXPECT_EQ(count(count1, b_block), 256u);
  const std::vector<int> got = read1(y, iota(256));
  for (int i = 0; i < 256; ++i) EXPECT_EQ(got[i], i + 1);
}

TEST_F(Conformance, C57_TreesAddedAfterKernelsRanLeaveOldDataIntact) {
  Tree first(device);
  Node leaf = first.root().pointer({64}).dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, {5, 200}, 9);
  std::vector<Tree> more;
  for (int i = 0; i < 20; ++i) {
    more.emplace_back(device);
    Field<int> y = more.back().root().pointer({64}).dense({4}).place<int>("y");
    write1(y, {i, 3 * i}, i + 1);
    ASSERT_EQ(read1(y, {i, 3 * i}), (std::vector<int>{i + 1, i + 1}));
    ASSERT_EQ(read1(x, {5, 200, 6}), (std::vector<int>{9, 9, 0}));
  }
}

TEST_F(Conformance, C58_TreesDestroyedAndRebuiltInManySizes) {
  for (int size = 1; size <= 1 << 20; size *= 4) {
    for (int round = 0; round < 3; ++round) {
      Tree tree(device);
      Node leaf = tree.root().pointer({size}).dense({3});
      Field<int> x = leaf.place<int>("x");
      write1(x, {0, 3 * size - 1}, size);
      ASSERT_EQ(read1(x, {0, 3 * size - 1, 1}), (std::vector<int>{size, size, 0}));
      ASSERT_EQ(count(count1, leaf), size == 1 ? 3u : 6u);
    }
  }
}

TEST_F(Conformance, C59_OneKernelActivatesInTwoTrees) {
  Tree a_tree(device), b_tree(device);
  Node a_leaf = a_tree.root().pointer({4096}).dense({4}),
       b_leaf = b_tree.root().pointer({1024}).pointer({64}).dense({1});
  Field<int> a = a_leaf.place<int>("a"), b = b_leaf.place<int>("b");
  run(grow_both1, range(16384), a, b);
  EXPECT_EQ(count(count1, a_leaf), 16384u);
  EXPECT_EQ(count(count1, b_leaf), 16384u);
  EXPECT_EQ(read1(b, {0, 1, 2, 32766}), (std::vector<int>{2, 0, 2, 2}));
}

// Trees that come and go must not pile up in the program or on the heap of the device.
TEST_F(Conformance, C60_ADestroyedTreeReturnsItsMemory) {
  const int64_t before = live_ref_counted_objects();
  for (int round = 0; round < 600; ++round) {
    Tree tree(device);
    Field<int> x = tree.root().pointer({4}).dense({4}).place<int>("x");
    write1(x, {round % 16}, 1);
  }
  wait(device->default_stream().barrier());
  // The program keeps up to 256 launches prepared, those of dead trees among them.
  EXPECT_LE(live_ref_counted_objects() - before, 256 + 20);
}

TEST_F(Conformance, C61_TiledGathersEqualTreeWalks) {
  for (int kind = 0; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    Tree tree(device);
    // Leaves beside each other below one or two pointer nodes; below a dense one (no tiles); narrower than the reach.
    Node leaf = kind == 0   ? tree.root().pointer({6, 6}).bitmasked({8, 4})
                : kind == 1 ? tree.root().pointer({3, 3}).pointer({4, 2}).dense({4, 4})
                : kind == 2 ? tree.root().pointer({3, 3}).dense({4, 2}).dense({4, 4})
                            : tree.root().pointer({24, 24}).dense({1, 3});
    Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y"), z = leaf.place<int>("z");
    std::mt19937 random(3);
    for (int n = 0; n < 8; ++n) {
      std::vector<int> coords;
      for (int i = 0; i < 20; ++i)
        coords.insert(coords.end(), {static_cast<int>(random() % 24), static_cast<int>(random() % 24)});
      write2(x, coords, static_cast<int>(random() % 1000));
    }
    run(box_sum2, over(leaf), Gathers{x, y});
    run(box_sum_by_walks2, over(leaf), x, z, 24);
    std::vector<int> all;
    for (int i = 0; i < 24 * 24; ++i) all.insert(all.end(), {i / 24, i % 24});
    EXPECT_EQ(read2(y, all), read2(z, all));
  }
}

TEST_F(Conformance, C61_BlocksReachTheirSiblingsBelowTheRoot) {
  Tree tree(device);
  Node a_leaf = tree.root().dense({4, 4}), b_leaf = tree.root().dense({4, 4});
  Field<int> a = a_leaf.place<int>("a"), b = b_leaf.place<int>("b");
  run(set_coordinate2, over(a_leaf), a, 10);
  run(block_sums2, over(a_leaf), a, b, 16);
  EXPECT_EQ(read2(b, {0, 0, 1, 2, 3, 3}), (std::vector<int>{1, 13, 34}));
}

TEST_F(Conformance, C64_ReadsOutsideTheDomainGiveZeroAndWritesAreErrors) {
  Tree tree(device, {.name = "grid", .origin = {-8}});
  Node leaf = tree.root().pointer({4}).dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, {-8, 7}, 1);
  const std::vector<int> beyond{-9, 8, -2147483647 - 1, 2147483647};
  for (const int c : beyond) {
    if (jit::codegen_options().checks)
      EXPECT_THROW(read1(x, {-8, c}), Error) << c;
    else
      EXPECT_EQ(read1(x, {-8, c}), (std::vector<int>{1, 0})) << c;
    device->default_stream().clear_error();
  }
  std::vector<int> outside{-9};
  auto done = program.launch(write_at1, range(1), x, outside.data(), 1);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(
      done.error().what(),
      "kernel conformance.write_at1: field 'x' on grid.pointer[4].dense[4]: coordinate (-9) is outside the "
      "domain [-8, 8)");
}

}  // namespace
}  // namespace coppice
