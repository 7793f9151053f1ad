// Stencils by halo tiles in private storage, against the same stencils by tree walks.
#include <random>

#include "conformance_stencils.kernels.h"
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C61_TiledGathersEqualTreeWalks) {
  for (int kind = 0; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    Tree tree(device);
    // Leaves beside each other below one or two pointer nodes; below a dense one (no
    // tiles); narrower than the reach.
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
    EXPECT_EQ(read2(y, square(24)), read2(z, square(24)));
  }
}

TEST_P(Conformance, C61_BlocksReachTheirSiblingsBelowTheRoot) {
  Tree tree(device);
  Node a_leaf = tree.root().dense({4, 4}), b_leaf = tree.root().dense({4, 4});
  Field<int> a = a_leaf.place<int>("a"), b = b_leaf.place<int>("b");
  run(set_coordinate2, over(a_leaf), a, 10);
  run(block_sums2, over(a_leaf), a, b, 16);
  EXPECT_EQ(read2(b, {0, 0, 1, 2, 3, 3}), (std::vector<int>{1, 13, 34}));
}

TEST_P(Conformance, C61_GathersEqualScattersInOneTwoAndThreeDimensions) {
  Tree one(device), two(device), three(device);
  Node n1 = one.root().pointer({8}).dense({8}), n2 = two.root().pointer({3, 6}).bitmasked({8, 4}),
       n3 = three.root().pointer({3, 3, 3}).dense({4, 4, 4});
  Field<int> x1 = n1.place<int>("x"), gather1 = n1.place<int>("gather"), scatter1 = n1.place<int>("scatter");
  Field<int> x2 = n2.place<int>("x"), gather2 = n2.place<int>("gather"), scatter2 = n2.place<int>("scatter");
  Field<int> x3 = n3.place<int>("x"), gather3 = n3.place<int>("gather"), scatter3 = n3.place<int>("scatter");
  // Every cell is active: a scatter into an inactive one would be a miss.
  write1(x1, iota(64), 77);
  write2(x2, square(24));
  run(set_coordinate2, over(n2), x2, 24);
  run(set_hashed3, range(12 * 12 * 12), x3, 3, 12);
  for (int i = 0; i < 64; i += 3) write1(x1, {i}, i * i % 101);
  run(star_sum1, over(n1), Gather1{x1, gather1});
  run(star_scatter1, over(n1), x1, scatter1, 64);
  EXPECT_EQ(read1(gather1, iota(64)), read1(scatter1, iota(64)));
  run(box_sum2, over(n2), Gathers{x2, gather2});
  run(box_scatter2, over(n2), x2, scatter2, 24);
  EXPECT_EQ(read2(gather2, square(24)), read2(scatter2, square(24)));
  run(box_sum3, over(n3), Gather3{x3, gather3});
  run(box_scatter3, over(n3), x3, scatter3, 12);
  uint64_t different = 0;
  run(compare3, over(n3), gather3, scatter3, inout(different));
  EXPECT_EQ(different, 0u);
  EXPECT_EQ(n3.wait_num_active_blocks(), 27u);
}

// Offsets from an origin below zero, two pointer levels, three inputs, and leaves whose halo tiles fit into
// private storage all, in part (two of three) or not at all.
TEST_P(Conformance, C62_SeveralInputsWithTilesOrWithoutEqualWalks) {
  for (const int side : is_emulated() ? std::vector{4, 8, 12} : std::vector{4, 64, 112}) {
    SCOPED_TRACE(side);
    const int n = 4 * side;
    Tree tree(device, {.origin = {-2 * side, -4 * side}});
    Node leaf = tree.root().pointer({2, 2}).pointer({2, 2}).dense({side, side});
    const Field<int> a = leaf.place<int>("a"), b = leaf.place<int>("b"), c = leaf.place<int>("c");
    const Field<int> y = leaf.place<int>("y"), z = leaf.place<int>("z");
    std::mt19937 random(7);
    for (const Field<int>& x : {a, b, c}) {
      for (int round = 0; round < 5; ++round) {
        std::vector<int> coords;
        for (int i = 0; i < 4 * side; ++i) {
          // The lower left quarter stays inactive but for what lies along its border.
          const int at[2] = {static_cast<int>(random() % n), static_cast<int>(random() % n)};
          if (at[0] < side && at[1] < side) continue;
          coords.insert(coords.end(), {at[0] - 2 * side, at[1] - 4 * side});
        }
        write2(x, coords, static_cast<int>(random() % 1000));
      }
    }
    EXPECT_EQ(leaf.wait_num_active_blocks(), 15u);
    const int domain[4] = {-2 * side, n - 2 * side, -4 * side, 0};
    run(three_inputs2, over(leaf), ThreeInputs{a, b, c, y});
    run(three_inputs_by_walks2, over(leaf), a, b, c, z, inout(domain));
    uint64_t sum_y = 0, different = 0;
    run(sum2, over(leaf), y, inout(sum_y));
    run(compare2, over(leaf), y, z, inout(different));
    EXPECT_EQ(different, 0u);
    EXPECT_GT(sum_y, 0u);
  }
}

// The reach is declared, not inferred; however an offset within it is computed, the tile has the value.
TEST_P(Conformance, C63_ComputedOffsetsWithinTheReachEqualWalks) {
  Tree tree(device);
  Node leaf = tree.root().pointer({8, 8}).dense({8, 8});
  const Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y"), z = leaf.place<int>("z");
  write2(x, square(64));
  run(set_coordinate2, over(leaf), x, 64);
  run(computed_offsets2, over(leaf), Reaching{x, y}, 1);
  run(computed_offsets_by_walks2, over(leaf), x, z, 64);
  EXPECT_EQ(read2(y, square(64)), read2(z, square(64)));
}

}  // namespace
}  // namespace coppice
