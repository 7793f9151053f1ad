// The allocator of pointer cells: reuse, addresses, zeroing and memory that stays flat.
#include <set>

#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C24_ActivationsWithClearingBetweenReuseOneCell) {
  Tree tree(device);
  Node block = tree.root().pointer({1024}), leaf = block.dense({32768});  // 128 KiB: one cell at first
  leaf.place<int>("x");
  for (int i = 0; i < 200; ++i) {
    finish(block.activate({{i, 0, 0}}));
    finish(block.deactivate_all());
  }
  EXPECT_LE(block.wait_usage().capacity_cells, 2u);
}

TEST_P(Conformance, C28_FreeListsAreCompactedWhetherMoreOrLessThanHalfWasUsed) {
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
      deactivate1(block, gone);
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
TEST_P(Conformance, C29_RecycledCellsOfOddSizesAreZeroed) {
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

TEST_P(Conformance, C30_DeactivatingTwiceRecyclesOnce) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, iota(64), 1);
  deactivate1(block, std::vector<int>(1000, 3));
  EXPECT_EQ(block.wait_usage().active_cells, 15u);
  finish(block.deactivate_all());
  write1(x, iota(64), 1);
  EXPECT_EQ(block.wait_usage().active_cells, 16u);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 16u);
}

}  // namespace
}  // namespace coppice
