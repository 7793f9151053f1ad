// Stencils by halo tiles in private storage, against the same stencils by tree walks.
#include <random>

#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C61_TiledGathersEqualTreeWalks) {
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

}  // namespace
}  // namespace coppice
