// Several trees: added late, destroyed, rebuilt, used by one kernel.
#include "tests/sparse/conformance_fixture.h"
#include "tests/sparse/resident_memory.h"

namespace coppice {
namespace {

TEST_P(Conformance, C57_TreesAddedAfterKernelsRanLeaveOldDataIntact) {
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

TEST_P(Conformance, C58_TreesDestroyedAndRebuiltInManySizes) {
  const int largest = is_emulated() ? 1 << 12 : 1 << 20;
  for (int size = 1; size <= largest; size *= 4) {
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

TEST_P(Conformance, C59_OneKernelActivatesInTwoTrees) {
  const int n = scaled(16384);
  Tree a_tree(device), b_tree(device);
  Node a_leaf = a_tree.root().pointer({4096}).dense({4}),
       b_leaf = b_tree.root().pointer({1024}).pointer({64}).dense({1});
  Field<int> a = a_leaf.place<int>("a"), b = b_leaf.place<int>("b");
  run(grow_both1, range(n), a, b);
  EXPECT_EQ(count(count1, a_leaf), static_cast<uint64_t>(n));
  EXPECT_EQ(count(count1, b_leaf), static_cast<uint64_t>(n));
  EXPECT_EQ(read1(b, {0, 1, 2, 2 * n - 2}), (std::vector<int>{2, 0, 2, 2}));
}

// Trees that come and go must not pile up in the program or on the heap of the device.
TEST_P(Conformance, C60_ADestroyedTreeReturnsItsMemory) {
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

// Cells of 4 KiB, written all over.
TEST_P(Conformance, C60_ADestroyedTreesCellsGoBackToTheSystem) {
  if (GetParam() == "cuda") GTEST_SKIP() << "the process's resident memory does not count a GPU's";
  const int cells = is_emulated() ? 4096 : 16384;
  const uint64_t bytes = uint64_t{4096} * static_cast<uint64_t>(cells);
  uint64_t before = 0;
  for (int round = 0; round < 2; ++round) {  // code and books of the device's own stay from the first one
    before = resident_bytes();
    {
      Tree tree(device);
      Node leaf = tree.root().pointer({cells}).dense({1024});
      Field<int> x = leaf.place<int>("x");
      run(write_every1, range(cells), x, 1024, 1);
      ASSERT_GE(resident_bytes(), before + bytes) << "nothing to give back";
    }
    wait(device->default_stream().barrier());
    program().wait();
  }
  if (!kFreedMemoryStays) {
    EXPECT_LT(resident_bytes(), before + bytes / 2);
  }
}

}  // namespace
}  // namespace coppice
