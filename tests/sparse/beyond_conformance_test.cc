// Where other sparse-grid systems were seen to fail: running out of memory, races, large counts,
// reuse of lists and mixed axes.
#include <fmt/format.h>

#include <set>

#include "core/error.h"
#include "sparse/device/random.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, B1_RunningOutOfMemoryIsAStatusAndTheDataStays) {
  Tree tree(device, {.name = "grid", .max_bytes = 1 << 20});
  Node block = tree.root().pointer({4096}), leaf = block.dense({1024});  // 4 KiB and a header
  Field<int> x = leaf.place<int>("x");
  std::vector<int> kept;
  for (int i = 0; i < 100; ++i) kept.push_back(1024 * i + i);
  write1(x, kept, 5);
  auto done = program().launch(write_every1, range(4096), x, 1024, 7);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
  const uint64_t capacity = (1 << 20) / (4096 + 64) - 1;  // one is the ambient cell
  const std::string message = done.error().what();
  for (const std::string& part :
       {std::string("kernel conformance.write_every1"), std::string("grid.pointer[4096]"),
        fmt::format("{} cells of 4160 bytes", capacity)})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  device->default_stream().clear_error();

  // Readable, and what was there before is there still.
  EXPECT_EQ(read1(x, kept), [&] {
    std::vector<int> expected(100, 5);
    expected[0] = 7;  // the only one of them that the failed launch wrote, too
    return expected;
  }());
  const NodeUsage full = block.wait_usage();
  EXPECT_EQ(full.active_cells, full.capacity_cells);
  EXPECT_EQ(full.capacity_cells, capacity);
  EXPECT_EQ(leaf.wait_num_active_blocks(), capacity);
  EXPECT_EQ(count(count1, leaf), capacity * 1024);
  // Usable: room is made, and taken again.
  deactivate1(block, iota(50));
  EXPECT_EQ(leaf.wait_num_active_blocks(), capacity - 50);
  write1(x, {4095 * 1024}, 9);
  EXPECT_EQ(read1(x, {4095 * 1024}), std::vector<int>{9});
}

// The loop of taichi issue 6401: everything goes, then all threads activate at once, many of them each leaf.
TEST_P(Conformance, B2_DeactivatedThenActivatedByAllThreadsEqualsTheSerialResult) {
  constexpr int kDomain = 16 * 8 * 8 * 4;
  const int items = scaled(4096), per_leaf = 8;
  Tree tree(device);
  Node top = tree.root().pointer({16}), middle = top.pointer({8}), block = middle.pointer({8}),
       leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < scaled(1000); ++round) {
    tree.deactivate_all();
    run(activate_again1, range(items), x, round, per_leaf, kDomain);
    std::set<int> cells, blocks, middles, tops;
    for (int i = 0; i < items / per_leaf; ++i) {
      const int at = static_cast<int>(hash_u32(5, i, round) % kDomain);
      cells.insert(at), blocks.insert(at / 4), middles.insert(at / 32), tops.insert(at / 256);
    }
    ASSERT_EQ(top.wait_usage().active_cells, tops.size()) << "round " << round;
    ASSERT_EQ(middle.wait_usage().active_cells, middles.size()) << "round " << round;
    ASSERT_EQ(block.wait_usage().active_cells, blocks.size()) << "round " << round;
    ASSERT_EQ(leaf.wait_num_active_blocks(), blocks.size()) << "round " << round;
    uint64_t expected = 0;
    for (const int at : cells) expected += static_cast<uint64_t>(at) + 1;
    ASSERT_EQ(sum(leaf, x), expected) << "round " << round;
  }
}

// Seen to fail, on the emulated GPU, when recycle_slot emptied a slot by a plain store.
TEST_P(Conformance, B2_CellsThatGoAndCellsThatComeInOneLaunch) {
  Tree tree(device);
  Node top = tree.root().pointer({16}), block = top.pointer({8}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  for (int round = 0; round < scaled(1000); ++round) {
    write1(x, iota(512), round + 1);
    run(swap_halves1, range(512), x, block.topology(), 4, 32);
    ASSERT_EQ(top.wait_usage().active_cells, 16u) << "round " << round;
    ASSERT_EQ(block.wait_usage().active_cells, 64u) << "round " << round;
    std::vector<int> expected(512);
    for (int i = 0; i < 512; ++i) expected[i] = i / 32 % 2 == 0 ? 0 : i + 1;
    ASSERT_EQ(read1(x, iota(512)), expected) << "round " << round;
  }
}

// More than 2^32 active cells in a few bytes: leaves without fields.
TEST_P(Conformance, B3_CountsOfCellsHave64Bits) {
  Tree tree(device);
  Node block = tree.root().pointer({2, 2, 2}), leaf = block.dense({1024, 1024, 1024});
  finish(block.activate({{0, 0, 0}, {1, 1, 1}, {0, 1, 0}, {1, 0, 0}, {1, 0, 1}}));
  EXPECT_EQ(leaf.wait_num_active_blocks(), 5u);
  EXPECT_EQ(leaf.wait_num_active_cells(), uint64_t{5} << 30);
  EXPECT_EQ(block.wait_num_active_cells(), 5u);
  EXPECT_LT(block.wait_usage().bytes, 1u << 20);
  EXPECT_TRUE(leaf.wait_is_active({2047, 2047, 2047}));
  EXPECT_FALSE(leaf.wait_is_active({0, 0, 2047}));
}

TEST_P(Conformance, B3_CountsOfCellsAreThoseThatALoopVisits) {
  Tree tree(device);
  Node block = tree.root().pointer({8}), masked = block.bitmasked({100}), plain = masked.dense({3});
  Field<int> x = plain.place<int>("x");
  write1(x, {0, 1, 299, 300, 2399});
  EXPECT_EQ(block.wait_num_active_cells(), 3u);
  EXPECT_EQ(masked.wait_num_active_cells(), 4u);
  EXPECT_EQ(masked.wait_num_active_cells(), count(count1, masked));
  EXPECT_EQ(plain.wait_num_active_cells(), 12u);
  EXPECT_EQ(plain.wait_num_active_cells(), count(count1, plain));
}

// The list of a loop over a node is made once per change. To see that it is not made again, its length is
// cut. Seen to fail, as C38 and B2 were, when the version does not advance after a launch that changed
// topology.
TEST_P(Conformance, B4_OnlyAChangeOfTopologyInvalidatesAList) {
  Tree tree(device);
  Node block = tree.root().pointer({64}), leaf = block.dense({4});
  Field<int> x = leaf.place<int>("x");
  write1(x, first_cells(0, 10), 1);
  EXPECT_EQ(count(count1, leaf), 40u);
  TreeStorage& storage = tree.storage();
  auto cut = [&] {
    finish(device->default_stream().enqueue("cut", [&](InStream& s) {
      write_value(s, &storage.memory().list_state(storage.lists().update(s, leaf.id(), false).number)->count,
                  3);
    }));
  };
  cut();
  EXPECT_EQ(count(count1, leaf), 12u) << "a loop made a new list";
  run(add_one1, over(leaf), x);
  write1(x, first_cells(0, 10), 2);  // active already
  deactivate1(block, {40, 50});      // not active
  EXPECT_EQ(read1(x, {0}), std::vector<int>{2});
  EXPECT_EQ(count(count1, leaf), 12u) << "nothing had changed";
  write1(x, {4 * 20}, 3);
  EXPECT_EQ(count(count1, leaf), 44u) << "an activation";
  cut();
  deactivate1(block, {20});
  EXPECT_EQ(count(count1, leaf), 40u) << "a deactivation";
}

TEST_P(Conformance, B5_NodesOnOtherAxesThanTheirParentsGoAndCome) {
  Tree tree(device);
  Node rows = tree.root().pointer({Axis::i}, {6}), cells = rows.bitmasked({Axis::j}, {70});
  Field<int> x = cells.place<int>("x");
  write2(x, {0, 0, 2, 69, 2, 3, 5, 64}, 4);
  EXPECT_EQ(rows.wait_usage().active_cells, 3u);
  EXPECT_EQ(count(count2, cells), 4u);
  EXPECT_EQ(active2(cells, {0, 0, 2, 69, 2, 3, 5, 64, 0, 1, 1, 0, 5, 0}),
            (std::vector<int>{1, 1, 1, 1, 0, 0, 0}));
  EXPECT_TRUE(rows.wait_is_active({2, 0, 0}));
  EXPECT_FALSE(rows.wait_is_active({3, 0, 0}));
  finish(cells.deactivate_all());
  EXPECT_EQ(count(count2, cells), 0u);
  EXPECT_EQ(rows.wait_usage().active_cells, 3u) << "the parents stay";
  EXPECT_EQ(read2(x, {0, 0, 2, 69}), (std::vector<int>{0, 0}));
  write2(x, {2, 1}, 6);
  finish(rows.deactivate({{2, 0, 0}}));
  EXPECT_EQ(active2(cells, {2, 1}), std::vector<int>{0});
  finish(tree.deactivate_all());
  EXPECT_EQ(rows.wait_usage().active_cells, 0u);
  write2(x, {2, 2}, 7);
  EXPECT_EQ(read2(x, {2, 1, 2, 2, 2, 3}), (std::vector<int>{0, 7, 0}));
}

TEST_P(Conformance, B5_AxesInAnyOrderOfLevels) {
  Tree tree(device);
  Node columns = tree.root().pointer({Axis::j}, {5}), rows = columns.pointer({Axis::i}, {4}),
       leaf = rows.dense({Axis::i, Axis::j}, {3, 2});
  Field<int> x = leaf.place<int>("x");
  write2(x, {0, 0, 11, 9, 4, 9, 5, 8}, 3);
  EXPECT_EQ(columns.wait_usage().active_cells, 2u);
  EXPECT_EQ(rows.wait_usage().active_cells, 3u);
  EXPECT_EQ(count(count2, leaf), 18u);
  run(set_coordinate2, over(leaf), x, 100);
  EXPECT_EQ(read2(x, {0, 1, 11, 8, 5, 9, 0, 2}), (std::vector<int>{1, 1108, 509, 0}));
  finish(rows.deactivate_all());
  EXPECT_EQ(rows.wait_usage().active_cells, 0u);
  EXPECT_EQ(columns.wait_usage().active_cells, 2u);
  EXPECT_EQ(read2(x, {0, 0, 11, 9}), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace coppice
