// Trees in use: activation, reads, loops, lists and collection on the cpu device.
#include "sparse/tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "core/error.h"
#include "heat.kernels.h"
#include "roles.kernels.h"
#include "sparse/device/random.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class TreeTest : public ::testing::Test {
 protected:
  IntrusivePtr<Device> device = cpu_or_test_device();
  Program program{device};

  std::vector<int> read2(const Field<int>& field, std::vector<int> coords) {
    std::vector<int> out(coords.size() / 2);
    run_on(program, read_coords2, range(static_cast<int64_t>(out.size())), field, coords, out);
    return out;
  }
};

TEST_F(TreeTest, WritingOneElementActivatesTheWholeLeaf) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16, 16}).dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords{5, 6, 7, 7};
  run_on(program, grow_coords2, range(2), x, coords, 9);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 1u);
  EXPECT_TRUE(leaf.wait_is_active({4, 4, 0}));
  EXPECT_FALSE(leaf.wait_is_active({8, 8, 0}));
  EXPECT_EQ(read2(x, {5, 6, 7, 7, 4, 4, 30, 30}), (std::vector<int>{9, 9, 0, 0}));
  EXPECT_EQ(leaf.wait_num_active_blocks(), 1u) << "a read activated a cell";
}

TEST_F(TreeTest, LoopsVisitEveryActiveCellOnceWithItsCoordinate) {
  Tree tree(device, {.origin = {-32, -32}});
  Node leaf = tree.root().pointer({8, 8}).dense({8, 8});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords{-32, -32, -1, 5, 31, 31};
  run_on(program, grow_coords2, range(3), x, coords, 1);
  finish(program.launch(set_cells2, over(leaf), x));
  EXPECT_EQ(read2(x, {-32, -30, -1, 0, 31, 30, 0, 0}), (std::vector<int>{-32030, -1000, 31030, 0}));
}

TEST_F(TreeTest, ListsAreInCoordinateOrderWhoeverActivatedFirst) {
  Tree tree(device);
  Node leaf = tree.root().pointer({4, 4}).pointer({4, 4}).dense({2, 2});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords;
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i) coords.insert(coords.end(), {int(random() % 32), int(random() % 32)});
  run_on(program, grow_coords2, range(4000), x, coords, 1);
  const uint64_t n = leaf.wait_num_active_blocks();
  ASSERT_EQ(n, 256u);
  std::vector<int> origins(2 * n, -1);
  run_on(program, list_blocks2, over(leaf), origins);
  auto key = [&](uint64_t i) {
    const int a = origins[2 * i] / 2, b = origins[2 * i + 1] / 2;
    return ((a / 4) * 4 + b / 4) * 16 + (a % 4) * 4 + b % 4;
  };
  for (uint64_t i = 1; i < n; ++i) ASSERT_LT(key(i - 1), key(i)) << i;
}

TEST_F(TreeTest, NonPowerOfTwoExtentsKeepCellsApart) {
  Tree tree(device);
  Node leaf = tree.root().pointer({3, 5}).dense({7, 3});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords;
  for (int i = 0; i < 21; ++i) {
    for (int j = 0; j < 15; ++j) coords.insert(coords.end(), {i, j});
  }
  run_on(program, grow_coords2, range(static_cast<int64_t>(coords.size() / 2)), x, coords, 1);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 15u);
  finish(program.launch(set_cells2, over(leaf), x));
  const std::vector<int> got = read2(x, coords);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], coords[2 * i] * 1000 + coords[2 * i + 1]);
}

TEST_F(TreeTest, BitmaskedLeavesLoopOverWrittenCellsOnly) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({3, 6}).bitmasked({8, 8});
  Field<int> x = leaf.place<int>("x");
  Field<int> y = leaf.place<int>("y");
  std::vector<int> coords{0, 0, 7, 9, 23, 47, 8, 8};
  run_on(program, grow_coords2, range(4), x, coords, 5);
  EXPECT_TRUE(leaf.wait_is_active({7, 9, 0}));
  EXPECT_FALSE(leaf.wait_is_active({7, 8, 0}));
  finish(program.launch(copy_other2, over(leaf), x, y));
  EXPECT_EQ(read2(y, {0, 0, 7, 9, 23, 47, 8, 8, 7, 8, 1, 1}), (std::vector<int>{6, 6, 6, 6, 0, 0}));
}

TEST_F(TreeTest, DeactivatedCellsReadZeroAndComeBackZeroed) {
  Tree tree(device);
  Node block = tree.root().pointer({64});
  Node leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  finish(program.launch(activate_coords1, range(256), leaf.topology(), 256));
  finish(program.launch(add_coords1, range(2560), x, 256));
  EXPECT_EQ(block.wait_usage().active_cells, 64u);
  finish(program.launch(deactivate_odd1, over(block), block.topology()));
  EXPECT_EQ(leaf.wait_num_active_blocks(), 32u);
  EXPECT_FALSE(leaf.wait_is_active({4, 0, 0}));
  EXPECT_TRUE(leaf.wait_is_active({8, 0, 0}));
  const uint64_t capacity = block.wait_usage().capacity_cells;
  for (int cycle = 0; cycle < 50; ++cycle) {
    finish(program.launch(activate_coords1, range(256), leaf.topology(), 256));
    ASSERT_EQ(block.wait_usage().active_cells, 64u);
    finish(program.launch(add_coords1, range(256), x, 256));  // fails when a recycled cell were not active
    finish(block.deactivate_all());
    ASSERT_EQ(block.wait_usage().active_cells, 0u);
  }
  EXPECT_EQ(block.wait_usage().capacity_cells, capacity) << "cells were not reused";
}

TEST_F(TreeTest, RecycledParentsRecycleTheirChildren) {
  Tree tree(device);
  Node top = tree.root().pointer({8});
  Node block = top.pointer({8});
  Node leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  for (int cycle = 0; cycle < 20; ++cycle) {
    finish(program.launch(activate_coords1, range(256), leaf.topology(), 256));
    ASSERT_EQ(block.wait_usage().active_cells, 64u);
    finish(program.launch(deactivate_odd1, over(top), top.topology()));
    ASSERT_EQ(top.wait_usage().active_cells, 4u);
    ASSERT_EQ(block.wait_usage().active_cells, 32u);
    ASSERT_EQ(leaf.wait_num_active_blocks(), 32u);
    finish(tree.deactivate_all());
    ASSERT_EQ(block.wait_usage().active_cells, 0u);
  }
}

TEST_F(TreeTest, AccumulatingIntoAnInactiveCellIsAnErrorThatNamesIt) {
  Tree tree(device, {.name = "grid"});
  Node leaf = tree.root().pointer({64}).dense({4});
  Field<int> x = leaf.place<int>("x");
  auto done = program.launch(add_coords1, range(1), x, 256);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(
      done.error().what(),
      "kernel heat.add_coords1: field 'x' on grid.pointer[64].dense[4]: accumulated into the inactive "
      "cell (0); activate it in a launch before");
  device->default_stream().clear_error();
}

TEST_F(TreeTest, ALaunchMayGrowATreeAndAccumulateIntoIt) {
  Tree tree(device, {.name = "grid"}), other(device, {.name = "sums"});
  Node leaf = tree.root().pointer({64}).dense({4});
  const Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  const Field<int> sum = other.root().dense({1}).place<int>("sum");
  finish(program.launch(grow_and_add1, range(1), x, y));
  EXPECT_EQ(wait_read(y, {0}), 1);
  finish(program.launch(grow_and_add1, range(1), x, sum));
  EXPECT_EQ(wait_read(sum, {0}), 1);
}

// Exactly what a launch's arguments may become: as in a call, but for structs of one handle.
struct PlainPair {
  float density;
  int kind;
};
struct OneHandle {
  Read<float> value;
};
static_assert(detail::LaunchArgument<float, double>);
static_assert(detail::LaunchArgument<PlainPair, PlainPair>);
static_assert(!detail::LaunchArgument<PlainPair, float>, "PlainPair{0.2f, 0} was not asked for");
static_assert(detail::LaunchArgument<OneHandle, Field<float>>);
static_assert(!detail::LaunchArgument<OneHandle, Field<double>>);
static_assert(!detail::LaunchArgument<Read<float>, Field<double>>);

TEST_F(TreeTest, GrowingOutsideTheDomainIsAnErrorThatNamesTheCoordinate) {
  Tree tree(device, {.name = "grid"});
  Node leaf = tree.root().pointer({4, 4}).dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords{3, 16};
  auto done = launch_and_wait(program, grow_coords2, range(1), x, coords, 1);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(
      done.error().what(),
      "kernel heat.grow_coords2: field 'x' on grid.pointer[4,4].dense[4,4]: coordinate (3, 16) is outside "
      "the domain [0, 16) x [0, 16)");
  device->default_stream().clear_error();
  EXPECT_EQ(leaf.wait_num_active_blocks(), 0u);
}

TEST_F(TreeTest, RunningOutOfAllowedMemoryIsAnErrorAndTheTreeStaysReadable) {
  Tree tree(device, {.name = "grid", .max_bytes = 64 << 10});
  Node block = tree.root().pointer({1024});
  Node leaf = block.dense({1024});
  Field<int> x = leaf.place<int>("x");
  auto done = program.launch(activate_coords1, range(1 << 20), leaf.topology(), 1 << 20);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
  device->default_stream().clear_error();
  EXPECT_EQ(block.wait_usage().active_cells, 14u) << "of 15, one is the ambient cell";
  EXPECT_EQ(leaf.wait_num_active_blocks(), 14u);
}

TEST_F(TreeTest, RolesAreCheckedWhenLaunched) {
  Tree tree(device, {.name = "grid"});
  Node leaf = tree.root().pointer({4, 4, 4}).dense({4, 4, 4});
  Field<float> now = leaf.place<float>("now");
  try {
    program.launch(diffuse, over(leaf), Heat{now, now}, 0.1f);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "kernel heat.diffuse: field 'now' on grid.pointer[4,4,4].dense[4,4,4] is both written and "
                 "read with a reach; use two fields");
  }
}

// Blocks write fields of the node looped over, and of those beside it below the same parent.
TEST_F(TreeTest, BlocksWriteNoNodeButTheirOwnAndThoseBeside) {
  Tree tree(device, {.name = "grid"});
  Node block = tree.root().pointer({4}), leaf = block.dense({4});
  Field<int> a = leaf.place<int>("a"), beside = block.dense({4}).place<int>("beside"),
             far = tree.root().dense({16}).place<int>("far");
  EXPECT_NO_THROW(program.launch(read_other_block, over(leaf), a, beside));
  try {
    program.launch(read_other_block, over(leaf), a, far);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "kernel roles.read_other_block: it writes field 'far' on grid.dense[16], which is neither on "
        "grid.pointer[4].dense[4] nor beside it");
  }
}

// The Laplacian against a plain dense array, over a bitmasked, a dense and an array-of-structs leaf.
class LaplacianTest : public TreeTest, public ::testing::WithParamInterface<int> {};
TEST_P(LaplacianTest, EqualsThePlainArray) {
  const int n = 48;
  Tree tree(device);
  Node block = tree.root().pointer({n / 8, n / 8, n / 8});
  Node leaf = GetParam() == 0 ? block.bitmasked({8, 8, 8}) : block.dense({8, 8, 8});
  if (GetParam() == 2) leaf = leaf.layout(CellLayout::kArrayOfStructs);
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
  const Shell shell{{n / 2, n / 2, n / 2}, 15.0f, 2.0f};
  finish(program.launch(grow_shell, range(n * n * n), now, shell, n));
  finish(program.launch(diffuse, over(leaf), Heat{now, next}, 0.1f));
  double sum = 0, expected_sum = 0;
  uint64_t count = 0, expected_count = 0;
  run_on(program, sum_cells, over(leaf), next, inout(sum), inout(count));

  std::vector<float> a(n * n * n, 0.0f);
  std::vector<bool> active(n * n * n, false), block_active(n * n * n / 512, false);
  auto at = [&](int x, int y, int z) {
    return x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= n ? 0.0f : a[(x * n + y) * n + z];
  };
  auto block_of = [&](int x, int y, int z) { return ((x / 8) * (n / 8) + y / 8) * (n / 8) + z / 8; };
  for (int i = 0; i < n * n * n; ++i) {
    const int x = i / n / n, y = i / n % n, z = i % n;
    const float d =
        std::sqrt(float((x - n / 2) * (x - n / 2) + (y - n / 2) * (y - n / 2) + (z - n / 2) * (z - n / 2))) -
        15.0f;
    if (std::abs(d) >= 2.0f) continue;
    a[i] = static_cast<float>(hash_u32(1, i) & 255u);
    active[i] = true, block_active[block_of(x, y, z)] = true;
  }
  for (int i = 0; i < n * n * n; ++i) {
    const int x = i / n / n, y = i / n % n, z = i % n;
    if (GetParam() == 0 ? !active[i] : !block_active[block_of(x, y, z)]) continue;
    const float laplace = at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z) +
                          at(x, y, z - 1) + at(x, y, z + 1) - 6 * a[i];
    expected_sum += a[i] + 0.1f * laplace;
    ++expected_count;
  }
  EXPECT_EQ(count, expected_count);
  EXPECT_NEAR(sum, expected_sum, 1e-6 * 255 * static_cast<double>(expected_count));
}
INSTANTIATE_TEST_SUITE_P(Leaves, LaplacianTest, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace coppice
