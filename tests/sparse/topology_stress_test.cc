// Topology under many threads: growth, shortages, races and failed launches, on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/error.h"
#include "heat.kernels.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/test_devices.h"
#include "topology_model.kernels.h"

namespace coppice {
namespace {

class TopologyRaces : public DeviceTest {};

using Coord2 = std::array<int, 2>;

TEST_P(TopologyRaces, ActivatingOneCellFromAllThreadsAllocatesOnce) {
  Tree tree(device);
  Node top = tree.root().pointer({64, 64}), block = top.pointer({4, 4}), leaf = block.dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 300; ++round) {
    const std::vector<int> coord{round, 1023 - round};
    run(activate_same2, range(scaled(20000)), x, coord);
    ASSERT_EQ(top.wait_usage().active_cells, 1u);
    ASSERT_EQ(block.wait_usage().active_cells, 1u);
    ASSERT_EQ(leaf.wait_num_active_blocks(), 1u);
    finish(tree.deactivate_all());
  }
  EXPECT_LE(block.wait_usage().capacity_cells, 600u) << "cells were not reused";
}

// Every cell in its own allocator cell, from one cell's capacity: many repeats of the launch, and none lost.
TEST_P(TopologyRaces, GrowsFromNothingAndLosesNoCell) {
  Tree tree(device);
  Node top = tree.root().pointer({256, 256}),
       leaf = top.dense({128, 128});  // 64 KiB a cell: one fits at first
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords;
  for (int i = 0; i < 3000; ++i) coords.insert(coords.end(), {i % 100 * 128 + 5, i / 100 * 128 + 9});
  std::vector<int> to(3000);
  for (int i = 0; i < 3000; ++i) to[i] = i + 1;
  run(set_coords2, range(3000), x, coords, to);
  EXPECT_EQ(top.wait_usage().active_cells, 3000u);
  std::vector<int> got(3000), active(3000);
  run(look_up2, range(3000), x, leaf.topology(), coords, got, active);
  EXPECT_EQ(got, to);
}

TEST_P(TopologyRaces, OneKernelGrowsSeveralTrees) {
  std::vector<Tree> trees;
  std::vector<Node> leaves;
  std::vector<Field<int>> fields;
  for (int t = 0; t < 3; ++t) {
    trees.emplace_back(device, TreeOptions{.name = "tree" + std::to_string(t)});
    leaves.push_back(trees[t].root().pointer({128, 128}).pointer({2, 2}).dense({32, 32}));
    fields.push_back(leaves[t].place<int>("x"));
  }
  const int items = scaled(40000);
  run(grow_three2, range(items), fields[0], fields[1], fields[2], 8192);
  std::set<Coord2> expected[3];
  for (int64_t i = 0; i < items; ++i) {
    for (int t = 0; t < 3; ++t) {
      const int x = static_cast<int>(i * (7 + 4 * t) % 8192), y = static_cast<int>(i / 3 % 8192);
      expected[t].insert({x / 32, y / 32});
    }
  }
  for (int t = 0; t < 3; ++t) {
    EXPECT_EQ(leaves[t].wait_num_active_blocks(), expected[t].size()) << t;
    std::vector<int> coords, values(items);
    for (int64_t i = 0; i < items; ++i)
      coords.insert(coords.end(), {static_cast<int>(i * (7 + 4 * t) % 8192), static_cast<int>(i / 3 % 8192)});
    run(read_coords2, range(items), fields[t], coords, values);
    EXPECT_EQ(values, std::vector<int>(items, t + 1)) << "what was set in tree " << t;
  }
}

// A launch that moves cells from one tree to another and needs room for them: every value arrives, once.
TEST_P(TopologyRaces, BlocksThatMoveToAnotherTreeArriveWithTheirValues) {
  Tree from(device, {.name = "from"}), to(device, {.name = "to"});
  Node from_block = from.root().pointer({64, 64}), from_leaf = from_block.dense({4, 4});
  Node to_block = to.root().pointer({64, 64}),
       to_leaf = to_block.dense({64, 64});  // 16 KiB a cell: four at first
  Field<int> a = from_leaf.place<int>("a"), b = to_leaf.place<int>("b");
  std::vector<int> coords, to_values(1000);
  for (int i = 0; i < 1000; ++i) coords.insert(coords.end(), {i % 64 * 4, i / 64 * 4}), to_values[i] = i + 1;
  run(set_coords2, range(1000), a, coords, to_values);
  run(move_blocks2, over(from_leaf), a, from_block.topology(), b);
  EXPECT_EQ(from_block.wait_usage().active_cells, 0u);
  EXPECT_EQ(to_block.wait_usage().active_cells, 1000u);
  std::vector<int> there, values(1000);
  for (int i = 0; i < 1000; ++i) there.insert(there.end(), {i % 64 * 64, i / 64 * 64});
  run(read_coords2, range(1000), b, there, values);
  EXPECT_EQ(values, to_values);
}

TEST_P(TopologyRaces, ActivationAndDeactivationOfTheSameCellsAtOnceLeaveAConsistentTree) {
  Tree tree(device);
  Node top = tree.root().pointer({4, 4}), block = top.pointer({4, 4}), leaf = block.dense({2, 2});
  Field<int> x = leaf.place<int>("x");
  std::mt19937 random(5);
  for (int round = 0; round < (is_emulated() ? 20 : 400); ++round) {
    run(flicker2, range(scaled(5000)), leaf.topology(), block.topology(), top.topology(),
        static_cast<int>(random() % 1000));
    const uint64_t blocks = leaf.wait_num_active_blocks();
    ASSERT_EQ(block.wait_usage().active_cells, blocks);
    std::vector<int> coords, got(256), active(256);
    for (int i = 0; i < 256; ++i) coords.insert(coords.end(), {2 * (i % 16), 2 * (i / 16)});
    run(look_up2, range(256), x, leaf.topology(), coords, got, active);
    ASSERT_EQ(std::count(active.begin(), active.end(), 1), static_cast<int64_t>(blocks)) << "round " << round;
    std::vector<int> origins(2 * blocks);
    run(list_origins2, over(leaf), origins);
    std::set<Coord2> distinct;
    for (uint64_t i = 0; i < blocks; ++i) distinct.insert({origins[2 * i], origins[2 * i + 1]});
    ASSERT_EQ(distinct.size(), blocks) << "a block is listed twice";
  }
  finish(tree.deactivate_all());
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 0u);
}

TEST_P(TopologyRaces, GoesOnAfterRunningOutOfAllowedMemory) {
  Tree tree(device, {.name = "grid", .max_bytes = 1 << 20});
  Node block = tree.root().pointer({4096, 1}),
       leaf = block.dense({1, 1024});  // 4 KiB and a header: 251 cells at most
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 20; ++round) {
    std::vector<int> coords, to;
    for (int i = 0; i < 1000; ++i)
      coords.insert(coords.end(), {(i * 37 + round) % 4096, i % 1024}), to.push_back(i + 1);
    auto done = launch_and_wait(program(), set_coords2, range(1000), x, coords, to);
    ASSERT_TRUE(done.is_error());
    ASSERT_EQ(done.error().code(), ErrorCode::kOutOfMemory) << done.error().what();
    device->default_stream().clear_error();
    const NodeUsage usage = block.wait_usage();
    ASSERT_EQ(usage.active_cells, usage.capacity_cells);
    ASSERT_EQ(leaf.wait_num_active_blocks(), usage.active_cells);
    std::vector<int> got(1000), active(1000);
    run(look_up2, range(1000), x, leaf.topology(), coords, got, active);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(got[i], active[i] ? to[i] : 0);
    finish(tree.deactivate_all());
    run(set_coords2, range(100), x, coords, to);
    ASSERT_EQ(block.wait_usage().active_cells, 100u);
    finish(tree.deactivate_all());
  }
}

// Cells that a failed launch deactivated are gone from the lists all the same.
TEST_P(TopologyRaces, AFailedLaunchsDeactivationsAreCollected) {
  Tree tree(device, {.name = "grid"}), other(device, {.name = "other"});
  Node block = tree.root().pointer({16, 16}), leaf = block.dense({2, 2});
  Field<int> x = leaf.place<int>("x");
  Node other_leaf = other.root().pointer({16, 16}).dense({2, 2});
  Field<int> y = other_leaf.place<int>("y");
  std::vector<int> coords;
  for (int i = 0; i < 256; ++i) coords.insert(coords.end(), {i % 16 * 2, i / 16 * 2});
  run(activate_coords2, range(256), leaf.topology(), coords);
  auto done = program().launch(leave_and_step_outside2, range(100), block.topology(), y);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange);
  device->default_stream().clear_error();
  EXPECT_EQ(leaf.wait_num_active_blocks(), 156u);
  EXPECT_EQ(block.wait_usage().active_cells, 156u);
  EXPECT_EQ(other_leaf.wait_num_active_blocks(), 1u) << "the other tree's lists are stale";
}

INSTANTIATE_TEST_SUITE_P(Sparse, TopologyRaces, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
