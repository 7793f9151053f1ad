// A tree's memory: what the report says of it, what trim() returns, and what is left of a tree that is gone.
//
// Breaks that were seen to fail here: trimming that keeps given-back cells in the free list (a crash), that
// leaves the pages of free cells alone, and a report that counts a pointer node's leaves twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

#include "core/error.h"
#include "sparse/device/layout.h"
#include "sparse/memory_report.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/resident_memory.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"
#include "topology_tools_model.kernels.h"

namespace coppice {
namespace {

class MemoryTest : public ::testing::Test {
 protected:
  IntrusivePtr<Device> device = cpu_or_test_device(2);
  Program program{device};

  // Sets value 1 + i at cell `at[i]` of a tree in one dimension.
  void set(const Field<int>& x, const std::vector<int>& at) {
    std::vector<int> coords, values;
    for (int c : at) coords.insert(coords.end(), {0, 0, c}), values.push_back(1 + c);
    run_on(program, set_triples, range(static_cast<int64_t>(at.size())), x, coords, values);
  }
  void deactivate(const Node& node, const std::vector<int>& at) {
    std::vector<std::array<int32_t, 3>> coords;
    for (int c : at) coords.push_back({c, 0, 0});
    finish(node.deactivate(coords));
  }
};

TEST_F(MemoryTest, UsageIsWhatTheLayoutSays) {
  Tree tree(device, {.name = "grid"});
  Node block = tree.root().pointer({100}), leaf = block.bitmasked({70}), inner = block.dense({3});
  Field<int> x = leaf.place<int>("x");
  inner.place<double>("y");
  set(x, {0, 1, 69, 70, 700});
  // Two mask words, then an array of 70 ints on a line of its own, up to whole lines.
  const uint64_t leaf_bytes = (64 + 70 * 4 + 63) / 64 * 64, inner_bytes = 3 * 8;
  const uint64_t cell_bytes =
      (64 + leaf_bytes + inner_bytes + 63) / 64 * 64;  // a header in a line of its own
  const NodeUsage l = leaf.wait_usage(), d = inner.wait_usage(), b = block.wait_usage();
  EXPECT_EQ(b.active_cells, 3u);
  EXPECT_EQ(b.existing_cells, 3u);
  EXPECT_EQ(b.cell_bytes, (b.capacity_cells + 1) * cell_bytes) << "the ambient cell is one of them";
  EXPECT_EQ(b.list_bytes, 2 * 4 * (b.capacity_cells + 1));
  EXPECT_EQ(l.active_cells, 5u);
  EXPECT_EQ(l.existing_cells, 3u * 70);
  EXPECT_EQ(l.capacity_cells, b.capacity_cells * 70);
  EXPECT_EQ(l.cell_bytes, b.capacity_cells * leaf_bytes);
  EXPECT_EQ(l.list_bytes, 0u);
  EXPECT_GE(l.element_list_bytes, 3 * sizeof(device::LoopElement)) << "counting made its list";
  EXPECT_EQ(d.active_cells, 9u);
  EXPECT_EQ(d.capacity_cells, b.capacity_cells * 3);
  EXPECT_EQ(d.cell_bytes, b.capacity_cells * inner_bytes);
  for (const NodeUsage& u : {b, l, d}) EXPECT_EQ(u.bytes, u.cell_bytes + u.list_bytes + u.element_list_bytes);

  const MemoryReport report = tree.wait_memory_report();
  ASSERT_EQ(report.nodes.size(), 3u);
  EXPECT_EQ(report.nodes[1].path, "grid.pointer[100].bitmasked[70]");
  EXPECT_EQ(report.root_bytes, 400u + 48) << "100 slots, in whole lines";
  EXPECT_EQ(report.total_bytes(), b.cell_bytes + b.list_bytes + b.element_list_bytes + l.element_list_bytes +
                                      d.element_list_bytes + report.root_bytes + report.ambient_bytes +
                                      report.bookkeeping_bytes + report.scratch_bytes);
  EXPECT_GE(report.ambient_bytes, leaf_bytes);
  EXPECT_GE(report.bookkeeping_bytes, sizeof(device::TreeState) + 4 * sizeof(device::NodeLayout));
  const std::string text = report.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3 + 6);
  for (const std::string& part : {std::string("bitmasked"), std::to_string(l.capacity_cells),
                                  std::to_string(b.bytes), std::to_string(report.total_bytes())})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

// Every cell that there is memory for is active, free, waiting, or was never used.
TEST_F(MemoryTest, CountsFreeCellsAndCollections) {
  Tree tree(device);
  Node top = tree.root().pointer({64}), block = top.pointer({8}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  const auto usages = [&] { return std::pair(top.wait_usage(), block.wait_usage()); };
  set(x, {0, 4, 8, 32, 64, 96});  // 3 blocks below cell 0 of the top, one each below 1, 2 and 3
  auto [t, b] = usages();
  EXPECT_EQ(t.active_cells, 4u);
  EXPECT_EQ(b.active_cells, 6u);
  for (const NodeUsage& u : {t, b}) {
    EXPECT_EQ(u.free_cells + u.recycled_cells + u.collected_cells + u.collections, 0u);
  }
  EXPECT_EQ(tree.wait_memory_report().collections, 0u);
  EXPECT_EQ(tree.wait_memory_report().collection_s, 0);

  deactivate(block, {0, 1});
  std::tie(t, b) = usages();
  EXPECT_EQ(b.active_cells, 4u);
  EXPECT_EQ(b.free_cells, 2u);
  EXPECT_EQ(b.collected_cells, 2u);
  EXPECT_EQ(b.collections, 1u);
  EXPECT_EQ(b.recycled_cells, 0u) << "collected behind the launch";
  EXPECT_EQ(t.collections, 0u) << "nothing of it was";
  EXPECT_EQ(tree.wait_memory_report().collections, 1u);
  const double first_s = tree.wait_memory_report().collection_s;
  EXPECT_GT(first_s, 0);

  set(x, {12});  // which takes one of the free cells
  EXPECT_EQ(block.wait_usage().free_cells, 1u);
  deactivate(top, {0});  // with the two blocks that it has left, on the device alone
  std::tie(t, b) = usages();
  EXPECT_EQ(t.active_cells, 3u);
  EXPECT_EQ(t.free_cells, 1u);
  EXPECT_EQ(t.collected_cells, 1u);
  EXPECT_EQ(b.active_cells, 3u);
  EXPECT_EQ(b.free_cells, 3u);
  EXPECT_EQ(b.collected_cells, 4u);
  EXPECT_EQ(b.collections, 2u);
  const MemoryReport report = tree.wait_memory_report();
  EXPECT_EQ(report.collections, 2u);
  EXPECT_GT(report.collection_s, first_s);
  EXPECT_EQ(report.nodes[1].usage.collected_cells, 4u);
  EXPECT_EQ(report.nodes[1].usage.free_cells, 3u);
  set(x, {100});  // an activation collects nothing
  EXPECT_EQ(tree.wait_memory_report().collections, 2u);
}

TEST_F(MemoryTest, CellsBelowABitmaskedNodeExistWhereTheirBitIsSet) {
  Tree tree(device);
  Node top = tree.root().bitmasked({10}), leaf = top.dense({7});
  Field<int> x = leaf.place<int>("x");
  set(x, {0, 6, 7, 69});
  EXPECT_EQ(top.wait_usage().active_cells, 3u);
  EXPECT_EQ(top.wait_usage().existing_cells, 10u);
  EXPECT_EQ(leaf.wait_usage().active_cells, 21u);
  EXPECT_EQ(leaf.wait_usage().capacity_cells, 70u);
  EXPECT_EQ(tree.root().wait_usage().cell_bytes, tree.wait_memory_report().root_bytes);
}

// 2000 cells of 16 KiB: 32 MB in use, of which 2 % stay.
TEST_F(MemoryTest, TrimReturnsWhatFreeCellsHold) {
  Tree tree(device);
  Node block = tree.root().pointer({2000}), leaf = block.dense({4096});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> all(2000), dropped, kept;
  std::iota(all.begin(), all.end(), 0);
  const auto touch = [&](const std::vector<int>& blocks) {
    std::vector<int> at;
    for (int b : blocks) {
      for (int k = 0; k < 4096; k += 512) at.push_back(4096 * b + k);
    }
    set(x, at);
  };
  touch(all);
  for (int b : all) (b % 50 == 7 && b < 1000 ? kept : dropped).push_back(b);
  deactivate(block, dropped);
  const size_t before = resident_bytes();
  const uint64_t capacity = block.wait_usage().capacity_cells;
  finish(tree.trim());
  if (device->name() != "cuda") {  // its memory is not the process's
    EXPECT_LT(resident_bytes() + (size_t{20} << 20), before);
  }
  const NodeUsage usage = block.wait_usage();
  EXPECT_EQ(usage.active_cells, kept.size());
  EXPECT_LT(usage.capacity_cells, capacity);
  EXPECT_GE(usage.capacity_cells, kept.size());
  EXPECT_EQ(leaf.wait_num_active_blocks(), kept.size()) << "loop lists are made again";
  for (int b : kept) EXPECT_EQ(wait_read(x, 4096 * b + 512), 1 + 4096 * b + 512);
  // A tree without active cells goes back to what a new one has.
  deactivate(block, kept);
  finish(tree.trim());
  Tree fresh(device);
  Node fresh_block = fresh.root().pointer({2000});
  fresh_block.dense({4096}).place<int>("x");
  EXPECT_EQ(block.wait_usage().capacity_cells, fresh_block.wait_usage().capacity_cells);
}

// Trimming at any time changes nothing that can be seen: distinct cells keep distinct
// memory, and new ones are zero.
TEST_F(MemoryTest, TrimmedTreesGoOnLikeOthers) {
  std::mt19937 random(3);
  Tree tree(device);
  Node top = tree.root().pointer({20}), block = top.pointer({10}), leaf = block.bitmasked({40});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> model(8000, 0);
  for (int round = 0; round < 60; ++round) {
    std::vector<int> at;
    for (int i = 0; i < 40; ++i) at.push_back(static_cast<int>(random() % 8000));
    set(x, at);
    for (int c : at) model[c] = 1 + c;
    const Node& node = round % 3 == 0 ? top : block;
    const int cells = round % 3 == 0 ? 400 : 40;
    std::vector<int> gone;
    for (int i = 0; i < (round % 3 == 0 ? 4 : 40); ++i)
      gone.push_back(static_cast<int>(random() % (8000 / cells)));
    deactivate(node, gone);
    for (int g : gone) std::fill_n(model.begin() + g * cells, cells, 0);
    if (random() % 2 == 0) finish(tree.trim());
    ASSERT_EQ(wait_read(x, 0, 8000), model) << "round " << round << ", seed 3";
    const uint64_t active = static_cast<uint64_t>(8000 - std::count(model.begin(), model.end(), 0));
    ASSERT_EQ(leaf.wait_usage().active_cells, active) << "round " << round;
  }
}

TEST_F(MemoryTest, ATreeThatIsGoneLeavesNothing) {
  constexpr size_t kTreeBytes = size_t{8} << 20;
  size_t after_first = 0;
  for (int round = 0; round < 110; ++round) {
    Tree tree(device);
    Field<int> x = tree.root().pointer({512}).dense({4096}).place<int>("x");
    std::vector<int> at;
    for (int i = 0; i < 512 * 4; ++i) at.push_back(i * 1024);
    set(x, at);
    if (round == 9) after_first = resident_bytes();
  }
  // One tree more or less may be on its way out.
  EXPECT_LT(resident_bytes(), after_first + 2 * kTreeBytes) << "100 trees of 8 MiB came and went";
}

}  // namespace
}  // namespace coppice
