// Topology against a model: random activation, writes, deactivation and collection, on several threads.
//
// The model is a set of active cells and a map of values. After every step the loop list, the usage and the values must
// be the model's, whatever the threads did.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/error.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "topology_model.kernels.h"

namespace coppice {
namespace {

using Coord2 = std::array<int, 2>;

void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

std::vector<int> flat(const std::vector<Coord2>& coords) {
  std::vector<int> out;
  for (const Coord2& c : coords) out.insert(out.end(), c.begin(), c.end());
  return out;
}

// A tree in two dimensions under test, and what should be in it. `inner` nodes outside in; the last one has the field.
struct Modelled {
  enum class Kind { kPointerDense, kPointerPointerDense, kPointerBitmasked, kBitmaskedBitmasked };

  Modelled(IntrusivePtr<Device> device, Program& program, Kind kind, uint64_t max_bytes = uint64_t{1} << 40)
      : program(program),
        kind(kind),
        tree(std::move(device), {.origin = {kFirst[0], kFirst[1]}, .max_bytes = max_bytes}),
        leaf(describe()),
        x(leaf.place<int>("x")) {}

  // 60 coordinates per axis, in ways to divide them that are no powers of two; the lowest ones are whole cells of every
  // inner node.
  static constexpr int kExtent = 60;
  static constexpr Coord2 kFirst{-20, -36};
  Node describe() {
    switch (kind) {
      case Kind::kPointerDense:
        nodes = {tree.root().pointer({12, 15})}, sizes = {{5, 4}};
        return nodes[0].dense({5, 4});
      case Kind::kPointerPointerDense:
        nodes = {tree.root().pointer({3, 5})}, sizes = {{20, 12}, {5, 3}};
        nodes.push_back(nodes[0].pointer({4, 4}));
        return nodes[1].dense({5, 3});
      case Kind::kPointerBitmasked:
        nodes = {tree.root().pointer({6, 10})}, sizes = {{10, 6}};
        return nodes[0].bitmasked({10, 6});
      case Kind::kBitmaskedBitmasked:
        nodes = {tree.root().bitmasked({6, 10})}, sizes = {{10, 6}};
        return nodes[0].bitmasked({10, 6});
    }
    throw std::logic_error("kind");
  }
  bool leaf_is_masked() const { return kind == Kind::kPointerBitmasked || kind == Kind::kBitmaskedBitmasked; }

  Coord2 block_of(int level, Coord2 c) const {
    return {(c[0] - kFirst[0]) / sizes[level][0], (c[1] - kFirst[1]) / sizes[level][1]};
  }

  // ---- the model
  void model_activate(Coord2 c) {
    for (size_t l = 0; l < nodes.size(); ++l) active[l].insert(block_of(static_cast<int>(l), c));
    if (leaf_is_masked()) bits.insert(c);
  }
  bool model_is_active(Coord2 c) const {
    for (size_t l = 0; l < nodes.size(); ++l) {
      if (!active[l].contains(block_of(static_cast<int>(l), c))) return false;
    }
    return !leaf_is_masked() || bits.contains(c);
  }
  // A cell of inner level `level` goes, with everything below it.
  void model_deactivate(int level, Coord2 c) {
    const Coord2 gone = block_of(level, c);
    auto inside = [&](Coord2 cell) { return block_of(level, cell) == gone; };
    active[level].erase(gone);
    for (size_t l = level + 1; l < nodes.size(); ++l) {
      std::erase_if(active[l], [&](Coord2 b) {
        return inside({b[0] * sizes[l][0] + kFirst[0], b[1] * sizes[l][1] + kFirst[1]});
      });
    }
    std::erase_if(bits, inside);
    std::erase_if(values, [&](const auto& v) { return inside(v.first); });
  }
  void model_clear() {
    for (auto& level : active) level.clear();
    bits.clear(), values.clear();
  }

  // ---- the same in the tree
  void activate(const std::vector<Coord2>& coords) {
    const std::vector<int> c = flat(coords);
    finish(program.launch(activate_coords2, range(static_cast<int64_t>(coords.size())), leaf.topology(),
                          c.data()));
    for (const Coord2& at : coords) model_activate(at);
  }
  void set(const std::vector<Coord2>& coords, const std::vector<int>& to) {
    const std::vector<int> c = flat(coords);
    finish(program.launch(set_coords2, range(static_cast<int64_t>(coords.size())), x, c.data(), to.data()));
    for (size_t i = 0; i < coords.size(); ++i) model_activate(coords[i]), values[coords[i]] = to[i];
  }
  void deactivate(int level, const std::vector<Coord2>& coords) {
    std::vector<int> c;
    const bool is_leaf = level == static_cast<int>(nodes.size());
    for (const Coord2& at : coords) {
      // Inner nodes count in their own cells, from as many of them below zero.
      for (int d = 0; d < 2; ++d)
        c.push_back(is_leaf ? at[d] : block_of(level, at)[d] + kFirst[d] / sizes[level][d]);
    }
    const Node& node = is_leaf ? leaf : nodes[level];
    finish(program.launch(deactivate_coords2, range(static_cast<int64_t>(coords.size())), node.topology(),
                          c.data()));
    for (const Coord2& at : coords) {
      if (is_leaf)
        bits.erase(at), values.erase(at);
      else
        model_deactivate(level, at);
    }
  }

  // ---- comparison
  void check() {
    std::set<Coord2> blocks;  // the containers that a loop over the leaf visits
    const std::set<Coord2>& holders = active[nodes.size() - 1];
    const uint64_t n = leaf.wait_num_active_blocks();
    ASSERT_EQ(n, holders.size());
    std::vector<int> origins(2 * n);
    finish(program.launch(list_origins2, over(leaf), origins.data()));
    for (uint64_t i = 0; i < n; ++i)
      blocks.insert(block_of(static_cast<int>(nodes.size()) - 1, {origins[2 * i], origins[2 * i + 1]}));
    ASSERT_EQ(blocks, holders);
    for (size_t l = 0; l < nodes.size(); ++l) {
      if (kind == Kind::kBitmaskedBitmasked) break;
      ASSERT_EQ(nodes[l].wait_usage().active_cells, active[l].size()) << "level " << l;
    }
    std::vector<Coord2> everywhere;
    for (int i = 0; i < kExtent * kExtent; ++i)
      everywhere.push_back({kFirst[0] + i / kExtent, kFirst[1] + i % kExtent});
    const std::vector<int> c = flat(everywhere);
    std::vector<int> got(everywhere.size()), is_active(everywhere.size());
    finish(program.launch(look_up2, range(static_cast<int64_t>(everywhere.size())), x, leaf.topology(),
                          c.data(), got.data(), is_active.data()));
    for (size_t i = 0; i < everywhere.size(); ++i) {
      const auto value = values.find(everywhere[i]);
      ASSERT_EQ(got[i], value == values.end() ? 0 : value->second)
          << everywhere[i][0] << ", " << everywhere[i][1];
      ASSERT_EQ(is_active[i] != 0, model_is_active(everywhere[i]))
          << everywhere[i][0] << ", " << everywhere[i][1];
    }
    // A loop over the cells visits the active ones.
    std::vector<int> visits(everywhere.size());
    finish(program.launch(count_visits2, over(leaf), visits.data(), kFirst[0], kFirst[1], kExtent));
    for (size_t i = 0; i < everywhere.size(); ++i)
      ASSERT_EQ(visits[i], model_is_active(everywhere[i]) ? 1 : 0);
  }

  Program& program;
  Kind kind;
  Tree tree;
  std::vector<Node> nodes;
  std::vector<std::array<int, 2>> sizes;  // coordinates that a cell of each inner node covers
  Node leaf;
  Field<int> x;
  std::array<std::set<Coord2>, 2> active;  // cells of the inner nodes, by level
  std::set<Coord2> bits;                   // cells of a bitmasked leaf
  std::map<Coord2, int> values;
};

class TopologyModel : public testing::TestWithParam<std::tuple<Modelled::Kind, int>> {};

TEST_P(TopologyModel, EqualsASetAndAMapUnderRandomOperations) {
  const auto [kind, seed] = GetParam();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  auto device = Device::cpu(4);
  Program program(device);
  Modelled m(device, program, kind);
  std::mt19937 random(static_cast<unsigned>(seed));
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int step = 0, ops = 0; ops < 12000; ++step) {
    std::vector<Coord2> coords;
    std::vector<int> to;
    // Distinct, since the last writer of one cell is anybody; a few or very many.
    std::set<Coord2> taken;
    const int wanted = pick(4) == 0 ? 800 : 1 + pick(40);
    for (int i = 0; i < wanted; ++i) {
      const Coord2 c{Modelled::kFirst[0] + pick(60), Modelled::kFirst[1] + pick(60)};
      if (taken.insert(c).second) coords.push_back(c), to.push_back(1 + pick(1000));
    }
    const int inner = pick(static_cast<int>(m.nodes.size()));
    switch (pick(8)) {
      case 0:
      case 1:
        m.activate(coords);
        break;
      case 2:
      case 3:
      case 4:
        m.set(coords, to);
        break;
      case 5:
        m.deactivate(inner, {coords.begin(), coords.begin() + std::min<size_t>(coords.size(), 12)});
        break;
      case 6:
        if (m.leaf_is_masked()) m.deactivate(static_cast<int>(m.nodes.size()), coords);
        break;
      case 7:
        if (pick(4) != 0) break;
        finish(m.tree.deactivate_all());
        m.model_clear();
        break;
    }
    ops += static_cast<int>(coords.size());
    if (pick(3) != 0) continue;
    SCOPED_TRACE(testing::Message() << "step " << step);
    ASSERT_NO_FATAL_FAILURE(m.check());
  }
  m.check();
}
INSTANTIATE_TEST_SUITE_P(
    Trees, TopologyModel,
    testing::Combine(testing::Values(Modelled::Kind::kPointerDense, Modelled::Kind::kPointerPointerDense,
                                     Modelled::Kind::kPointerBitmasked, Modelled::Kind::kBitmaskedBitmasked),
                     testing::Values(1, 2, 3)));

TEST(Topology, ActivatingOneCellFromAllThreadsAllocatesOnce) {
  auto device = Device::cpu(4);
  Program program(device);
  Tree tree(device);
  Node top = tree.root().pointer({64, 64}), block = top.pointer({4, 4}), leaf = block.dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 300; ++round) {
    const std::vector<int> coord{round, 1023 - round};
    finish(program.launch(activate_same2, range(20000), x, coord.data()));
    ASSERT_EQ(top.wait_usage().active_cells, 1u);
    ASSERT_EQ(block.wait_usage().active_cells, 1u);
    ASSERT_EQ(leaf.wait_num_active_blocks(), 1u);
    finish(tree.deactivate_all());
  }
  EXPECT_LE(block.wait_usage().capacity_cells, 600u) << "cells were not reused";
}

// Every cell in its own allocator cell, from one cell's capacity: many repeats of the launch, and none lost.
TEST(Topology, GrowsFromNothingAndLosesNoCell) {
  auto device = Device::cpu(4);
  Program program(device);
  Tree tree(device);
  Node top = tree.root().pointer({256, 256}),
       leaf = top.dense({128, 128});  // 64 KiB a cell: one fits at first
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords;
  for (int i = 0; i < 3000; ++i) coords.insert(coords.end(), {i % 100 * 128 + 5, i / 100 * 128 + 9});
  std::vector<int> to(3000);
  for (int i = 0; i < 3000; ++i) to[i] = i + 1;
  finish(program.launch(set_coords2, range(3000), x, coords.data(), to.data()));
  EXPECT_EQ(top.wait_usage().active_cells, 3000u);
  std::vector<int> got(3000), active(3000);
  finish(program.launch(look_up2, range(3000), x, leaf.topology(), coords.data(), got.data(), active.data()));
  EXPECT_EQ(got, to);
}

TEST(Topology, OneKernelGrowsSeveralTrees) {
  auto device = Device::cpu(4);
  Program program(device);
  std::vector<Tree> trees;
  std::vector<Node> leaves;
  std::vector<Field<int>> fields;
  for (int t = 0; t < 3; ++t) {
    trees.emplace_back(device, TreeOptions{.name = "tree" + std::to_string(t)});
    leaves.push_back(trees[t].root().pointer({128, 128}).pointer({2, 2}).dense({32, 32}));
    fields.push_back(leaves[t].place<int>("x"));
  }
  finish(program.launch(grow_three2, range(40000), fields[0], fields[1], fields[2], 8192));
  std::set<Coord2> expected[3];
  for (int64_t i = 0; i < 40000; ++i) {
    for (int t = 0; t < 3; ++t) {
      const int x = static_cast<int>(i * (7 + 4 * t) % 8192), y = static_cast<int>(i / 3 % 8192);
      expected[t].insert({x / 32, y / 32});
    }
  }
  for (int t = 0; t < 3; ++t) EXPECT_EQ(leaves[t].wait_num_active_blocks(), expected[t].size()) << t;
}

// A launch that moves cells from one tree to another and runs out of room: what it deactivated in the first round is
// still read in the repeat.
TEST(Topology, ARepeatedLaunchStillReadsWhatItDeactivated) {
  auto device = Device::cpu(4);
  Program program(device);
  Tree from(device, {.name = "from"}), to(device, {.name = "to"});
  Node from_block = from.root().pointer({64, 64}), from_leaf = from_block.dense({4, 4});
  Node to_block = to.root().pointer({64, 64}),
       to_leaf = to_block.dense({64, 64});  // 16 KiB a cell: four at first
  Field<int> a = from_leaf.place<int>("a"), b = to_leaf.place<int>("b");
  std::vector<int> coords, to_values(1000);
  for (int i = 0; i < 1000; ++i) coords.insert(coords.end(), {i % 64 * 4, i / 64 * 4}), to_values[i] = i + 1;
  finish(program.launch(set_coords2, range(1000), a, coords.data(), to_values.data()));
  finish(program.launch(move_blocks2, over(from_leaf), a, from_block.topology(), b));
  EXPECT_EQ(from_block.wait_usage().active_cells, 0u);
  EXPECT_EQ(to_block.wait_usage().active_cells, 1000u);
}

TEST(Topology, ActivationAndDeactivationOfTheSameCellsAtOnceLeaveAConsistentTree) {
  auto device = Device::cpu(4);
  Program program(device);
  Tree tree(device);
  Node top = tree.root().pointer({4, 4}), block = top.pointer({4, 4}), leaf = block.dense({2, 2});
  Field<int> x = leaf.place<int>("x");
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    finish(program.launch(flicker2, range(5000), leaf.topology(), block.topology(), top.topology(),
                          static_cast<int>(random() % 1000)));
    const uint64_t blocks = leaf.wait_num_active_blocks();
    ASSERT_EQ(block.wait_usage().active_cells, blocks);
    std::vector<int> coords, got(256), active(256);
    for (int i = 0; i < 256; ++i) coords.insert(coords.end(), {2 * (i % 16), 2 * (i / 16)});
    finish(
        program.launch(look_up2, range(256), x, leaf.topology(), coords.data(), got.data(), active.data()));
    ASSERT_EQ(std::count(active.begin(), active.end(), 1), static_cast<int64_t>(blocks)) << "round " << round;
    std::vector<int> origins(2 * blocks);
    finish(program.launch(list_origins2, over(leaf), origins.data()));
    std::set<Coord2> distinct;
    for (uint64_t i = 0; i < blocks; ++i) distinct.insert({origins[2 * i], origins[2 * i + 1]});
    ASSERT_EQ(distinct.size(), blocks) << "a block is listed twice";
  }
  finish(tree.deactivate_all());
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 0u);
}

TEST(Topology, GoesOnAfterRunningOutOfAllowedMemory) {
  auto device = Device::cpu(4);
  Program program(device);
  Tree tree(device, {.name = "grid", .max_bytes = 1 << 20});
  Node block = tree.root().pointer({4096, 1}),
       leaf = block.dense({1, 1024});  // 4 KiB and a header: 252 cells at most
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < 20; ++round) {
    std::vector<int> coords, to;
    for (int i = 0; i < 1000; ++i)
      coords.insert(coords.end(), {(i * 37 + round) % 4096, i % 1024}), to.push_back(i + 1);
    auto done = program.launch(set_coords2, range(1000), x, coords.data(), to.data());
    wait(done);
    ASSERT_TRUE(done.is_error());
    ASSERT_EQ(done.error().code(), ErrorCode::kOutOfMemory) << done.error().what();
    device->default_stream().clear_error();
    const NodeUsage usage = block.wait_usage();
    ASSERT_EQ(usage.active_cells, usage.capacity_cells);
    ASSERT_EQ(leaf.wait_num_active_blocks(), usage.active_cells);
    std::vector<int> got(1000), active(1000);
    finish(
        program.launch(look_up2, range(1000), x, leaf.topology(), coords.data(), got.data(), active.data()));
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(got[i], active[i] ? to[i] : 0);
    finish(tree.deactivate_all());
    finish(program.launch(set_coords2, range(100), x, coords.data(), to.data()));
    ASSERT_EQ(block.wait_usage().active_cells, 100u);
    finish(tree.deactivate_all());
  }
}

// What a failed launch deactivated is gone from the lists all the same.
TEST(Topology, AFailedLaunchsDeactivationsAreCollected) {
  auto device = Device::cpu(4);
  Program program(device);
  Tree tree(device, {.name = "grid"}), other(device, {.name = "other"});
  Node block = tree.root().pointer({16, 16}), leaf = block.dense({2, 2});
  Field<int> x = leaf.place<int>("x");
  Node other_leaf = other.root().pointer({16, 16}).dense({2, 2});
  Field<int> y = other_leaf.place<int>("y");
  std::vector<int> coords;
  for (int i = 0; i < 256; ++i) coords.insert(coords.end(), {i % 16 * 2, i / 16 * 2});
  finish(program.launch(activate_coords2, range(256), leaf.topology(), coords.data()));
  auto done = program.launch(leave_and_step_outside2, range(100), block.topology(), y);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange);
  device->default_stream().clear_error();
  EXPECT_EQ(leaf.wait_num_active_blocks(), 156u);
  EXPECT_EQ(block.wait_usage().active_cells, 156u);
  EXPECT_EQ(other_leaf.wait_num_active_blocks(), 1u) << "the other tree's lists are stale";
}

}  // namespace
}  // namespace coppice
