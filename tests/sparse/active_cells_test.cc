// All active cells of a node on the host: which there are, in what order, and with what values.
#include "sparse/active_cells.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/error.h"
#include "reductions.kernels.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

using Coord3 = std::array<int32_t, 3>;

class ActiveCellsOf : public DeviceTest {};

// Sets cells at random of a tree of one or two axes, and compares.
void check(Program& program, const Node& node, int dims, int first, int side) {
  const Field<float> other = node.place<float>("other"), x = node.place<float>("x");
  EXPECT_TRUE(wait_read_active(x).coords.empty());
  std::mt19937 random(5);
  std::map<Coord3, float> model;
  for (int i = 0; i < 60; ++i) {
    Coord3 c{};
    for (int a = 0; a < dims; ++a) c[a] = first + static_cast<int>(random() % side);
    model[c] = static_cast<float>(i + 1);
  }
  std::vector<Coord3> cells;
  std::vector<int> coords;
  std::vector<float> values;
  for (const auto& [c, value] : model) {
    cells.push_back(c), values.push_back(value);
    for (int a = 0; a < 3; ++a) coords.push_back(a < 3 - dims ? 0 : c[a - (3 - dims)]);
  }
  finish(node.activate(cells));
  run_on(program, add_floats, range(static_cast<int64_t>(cells.size())), x, coords, values);
  const ActiveCells<float> read = wait_read_active(x);
  ASSERT_EQ(read.coords.size(), read.values.size());
  EXPECT_EQ(read.coords.size(), node.wait_num_active_cells());
  std::map<Coord3, float> found;
  for (size_t i = 0; i < read.coords.size(); ++i) {
    EXPECT_TRUE(found.emplace(read.coords[i], read.values[i]).second) << "a cell is there twice";
    EXPECT_EQ(read.values[i], model.contains(read.coords[i]) ? model[read.coords[i]] : 0.0f);
  }
  for (const auto& [c, value] : model) EXPECT_TRUE(found.contains(c));
  for (const float value : wait_read_active(other).values) EXPECT_EQ(value, 0.0f);
  // A second reading gives the same order.
  const ActiveCells<float> again = wait_read_active(x);
  EXPECT_EQ(again.coords, read.coords);
}

TEST_P(ActiveCellsOf, AnyNodeAreThoseOfTheModel) {
  Tree dense(device, {.name = "a", .origin = {-24, -24}}), masked(device), pointer(device),
      line(device, {.name = "d", .origin = {-70}});
  check(program(), dense.root().pointer({8, 8}).dense({6, 6}), 2, -24, 48);
  check(program(), masked.root().pointer({4, 4}).bitmasked({11, 7}), 2, 0, 28);
  check(program(), pointer.root().pointer({4, 4}).pointer({8, 8}), 2, 0, 32);
  check(program(), line.root().pointer({20}).bitmasked({70}), 1, -70, 900);
}

TEST_P(ActiveCellsOf, ABoxStandInItsOrder) {
  Tree tree(device);
  const Node leaf = tree.root().pointer({2, 2}).dense({2, 2});
  const Field<float> x = leaf.place<float>("x");
  finish(leaf.activate({{2, 1}, {0, 0}}));
  program().launch(store_whole, over(leaf), x);
  const ActiveCells<float> read = wait_read_active(x);
  const std::vector<Coord3> coords{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 1, 0},
                                   {2, 0, 0}, {2, 1, 0}, {3, 0, 0}, {3, 1, 0}};
  EXPECT_EQ(read.coords, coords);
  EXPECT_EQ(read.values, (std::vector<float>{0, 1, 8, 9, 16, 17, 24, 25}));
}

TEST_P(ActiveCellsOf, WhatHasNoneIsRefused) {
  Tree tree(device);
  const Node lists = tree.root().pointer({4}).dynamic(100);
  const Field<float> x = lists.place<float>("x");
  EXPECT_THROW(wait_read_active(x), Error);
  EXPECT_THROW(wait_read_active(Field<float>{}), Error);
  EXPECT_THROW(wait_read_active(lists.topology()), Error);
}

INSTANTIATE_TEST_SUITE_P(Sparse, ActiveCellsOf, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
