// The allocator of pointer cells: reuse, addresses, zeroing and memory that stays flat.
#include <algorithm>
#include <set>

#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

std::set<uint64_t> values_of(const std::map<int, uint64_t>& addresses) {
  std::set<uint64_t> out;
  for (const auto& [block, at] : addresses) out.insert(at);
  return out;
}

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

// Seen to fail, as C21, C27, C29 and B2 were, when what is left of a free list did not move to its head.
TEST_P(Conformance, C28_FreeListsAreCompactedWhetherMoreOrLessThanHalfWasUsed) {
  for (const int used : {1, 30, 50, 51, 99, 100}) {
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

// Seen to fail, as C17, C28 and B2 were, when collection does not zero recycled cells.
TEST_P(Conformance, C29_RecycledCellsOfOddSizesAreZeroed) {
  Tree tree(device);
  Node block = tree.root().pointer({16}), leaf = block.dense({3});
  Field<int> x = leaf.place<int>("x");
  Field<SevenBytes> odd = leaf.place<SevenBytes>("odd");  // 21 bytes a block
  for (int round = 0; round < 4; ++round) {
    write1(x, iota(48), 7);
    run(fill_seven_bytes, range(48), odd, 0x5a);
    finish(block.deactivate_all());
    write1(x, {0, 47}, 1);
    std::vector<int> expected(48, 0);
    expected[0] = expected[47] = 1;
    EXPECT_EQ(read1(x, iota(48)), expected);
    uint32_t set = 0;
    run(count_seven_bytes, range(48), odd, inout(set));
    EXPECT_EQ(set, 0u) << "bytes of the odd field, of 336";
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

// 100,000 particles in one block; cells are never freed one by one, and yet two are enough for ever.
TEST_P(Conformance, C22_ScatteringParticlesAgainAndAgainNeedsTwoCells) {
  Tree tree(device);
  Node block = tree.root().pointer({128}), leaf = block.dense({32768});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 100; ++round) {
    tree.deactivate_all();
    program().launch(scatter1, range(scaled(100000)), x, round, 32768);
  }
  program().wait();
  EXPECT_EQ(block.wait_usage().active_cells, 1u);
  EXPECT_LE(block.wait_usage().capacity_cells, 2u);
}

// The cells that particles are in, found anew in each substep: nothing grows once the orbits are through.
TEST_P(Conformance, C25_RebuildingCellsOfParticlesLeaksNothing) {
  const int n = 64, particles = scaled(10000), substeps = scaled(1000);
  Tree tree(device);
  Node block = tree.root().pointer({16, 16}), cells = block.bitmasked({4, 4});
  Field<int> in_cell = cells.place<int>("in_cell");
  uint64_t bytes = 0, blocks = 0;
  for (int step = 0; step < substeps; ++step) {
    tree.deactivate_all();
    program().launch(enter_cells2, range(particles), cells.topology(), step, n);
    program().launch(count_in_cells2, range(particles), in_cell, step, n);
    uint64_t total = 0;
    run(sum2, over(cells), in_cell, inout(total));
    ASSERT_EQ(total, static_cast<uint64_t>(particles)) << "substep " << step;
    if (step == n) bytes = block.wait_usage().bytes, blocks = block.wait_usage().capacity_cells;
  }
  EXPECT_EQ(block.wait_usage().bytes, bytes);
  EXPECT_EQ(block.wait_usage().capacity_cells, blocks);
  wait(tree.deactivate_all());
  EXPECT_EQ(block.wait_usage().active_cells, 0u) << "cells that are neither active nor free";
}

// Seen to fail, as C11, C22, C24, C25 and C27 were, when collection drops recycled cells.
TEST_P(Conformance, C26_FreedCellsAreHandedOutAgainAndOthersStay) {
  Tree tree(device);
  Node block = tree.root().pointer({100}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, first_cells(0, 19));
  const auto before = addresses4(leaf);
  deactivate1(block, {2, 3, 7, 11, 18});
  write1(x, first_cells(50, 55));
  const auto after = addresses4(leaf);
  std::set<uint64_t> freed, reused;
  for (const auto& [b, at] : before) {
    if (after.contains(b))
      EXPECT_EQ(after.at(b), at) << "block " << b << " moved";
    else
      freed.insert(at);
  }
  for (const auto& [b, at] : after) {
    if (!before.contains(b)) reused.insert(at);
  }
  EXPECT_EQ(freed.size(), 5u);
  EXPECT_EQ(reused, freed);
}

TEST_P(Conformance, C27_AFreeListServesHalfOfItselfAndIsWholeAgain) {
  Tree tree(device);
  Node block = tree.root().pointer({100}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, first_cells(0, 24));
  const std::set<uint64_t> all = values_of(addresses4(leaf));
  ASSERT_EQ(all.size(), 24u);
  finish(block.deactivate_all());  // 24 free cells, from none
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  write1(x, first_cells(30, 42));
  const std::set<uint64_t> half = values_of(addresses4(leaf));
  EXPECT_EQ(half.size(), 12u);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), half.begin(), half.end()));
  EXPECT_EQ(block.wait_usage().active_cells, 12u);
  finish(block.deactivate_all());
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  write1(x, first_cells(60, 84));
  EXPECT_EQ(values_of(addresses4(leaf)), all) << "the same 24 and no other";
}

}  // namespace
}  // namespace coppice
