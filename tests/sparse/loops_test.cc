// Loops over the elements of lists, and over items that the threads of a block share.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "loops.kernels.h"
#include "runtime_collection.kernels.h"
#include "sparse/device/lanes.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/loop_devices.h"

namespace coppice {
namespace {

class Entries : public LoopTest {
 protected:
  // Lists at some of the coordinates below `extent`, of lengths around those of whole chunks.
  void make_lists(std::array<int, 3> extent, int chunk) {
    std::mt19937 random(7);
    const int lengths[] = {0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 2 * chunk + 3};
    for (int x = 0; x < extent[0]; ++x) {
      for (int y = 0; y < extent[1]; ++y) {
        for (int z = 0; z < extent[2]; ++z) {
          if (random() % 3 == 0) continue;
          coords.insert(coords.end(), {x, y, z});
          length.push_back(lengths[random() % std::size(lengths)]);
        }
      }
    }
    total = static_cast<uint64_t>(std::accumulate(length.begin(), length.end(), 0));
  }
  Loop lists() const { return range(static_cast<int64_t>(length.size())); }

  // Fills, loops, and compares every list with what the loop was to make of it.
  template <class Fill, class Visit>
  void check(Node node, std::array<int, 3> extent, int chunk, const Fill& fill, const Visit& visit) {
    SCOPED_TRACE(node.path());
    coords.clear(), length.clear();
    make_lists(extent, chunk);
    Field<int> x = node.place<int>("x");
    run(fill, lists(), x, coords, length);
    CoppiceVisits visits{};
    run(visit, over(node), x, inout(visits));
    EXPECT_EQ(visits.entries, total);
    EXPECT_EQ(visits.misplaced, 0u);
    const int dims = extent[2] > 1 ? 3 : extent[1] > 1 ? 2 : 1;
    for (size_t l = 0; l < length.size(); ++l) {
      const int* c = &coords[3 * l];
      const std::vector<int> values = dims == 3   ? wait_read_list(x, {c[0], c[1], c[2]})
                                      : dims == 2 ? wait_read_list(x, {c[0], c[1]})
                                                  : wait_read_list(x, c[0]);
      ASSERT_EQ(static_cast<int>(values.size()), length[l]);
      for (int k = 0; k < length[l]; ++k)
        ASSERT_EQ(-values[k] - 1, (((c[0] * 16 + c[1]) * 16 + c[2]) << 12) + k) << l;
    }
  }

  std::vector<int> coords, length;
  uint64_t total = 0;
};

// Conformance 54. Seen to fail when a chunk's count was its capacity, and when
// `index` forgot the chunk's ordinal.
TEST_P(Entries, EveryElementIsVisitedOnceAndKnowsItsPlace) {
  for (int chunk : {1, 4, 64}) {
    Tree dense(device), pointers(device), deep(device), masked(device), odd(device);
    check(dense.root().dense({9}).dynamic(1000, chunk), {9, 1, 1}, chunk, fill_lists1, visit1);
    check(pointers.root().pointer({3, 5}).dynamic(1000, chunk), {3, 5, 1}, chunk, fill_lists2, visit2);
    check(deep.root().pointer({2, 3, 2}).pointer({2, 1, 2}).dynamic(1000, chunk), {4, 3, 4}, chunk,
          fill_lists3, visit3);
    check(masked.root().pointer({3}).bitmasked({5}).dynamic(1000, chunk), {15, 1, 1}, chunk, fill_lists1,
          visit1);
    check(odd.root().pointer({2, 1}).dense({3, 7}).dynamic(1000, chunk), {6, 7, 1}, chunk, fill_lists2,
          visit2);
  }
}

// Seen to fail when elements were taken to lie value_bytes apart instead of the field's stride.
TEST_P(Entries, FieldsOfAnElementLieApartOrTogether) {
  for (CellLayout layout : {CellLayout::kStructOfArrays, CellLayout::kArrayOfStructs}) {
    Tree tree(device);
    Node node = tree.root().pointer({8}).dynamic(1000, 8).layout(layout);
    Field<int> x = node.place<int>("x");
    Field<int8_t> visits = node.place<int8_t>("visits");
    Field<double> half = node.place<double>("half");
    make_lists({8, 1, 1}, 8);
    run(fill_lists1, lists(), x, coords, length);
    for (int round = 0; round < 3; ++round) run(halve_entries, over(node), x, half, visits);
    for (size_t l = 0; l < length.size(); ++l) {
      const std::vector<int> from = wait_read_list(x, coords[3 * l]);
      const std::vector<double> to = wait_read_list(half, coords[3 * l]);
      ASSERT_EQ(to.size(), from.size());
      for (size_t k = 0; k < to.size(); ++k) ASSERT_EQ(to[k], 0.5 * from[k]);
      EXPECT_EQ(wait_read_list(visits, coords[3 * l]), std::vector<int8_t>(from.size(), 3));
    }
    coords.clear(), length.clear();
  }
}

// Seen to fail when the other list was read by its coordinate alone.
TEST_P(Entries, AnElementReadsItsCellAndTheListBeside) {
  Tree tree(device);
  Node cells = tree.root().pointer({2}).dense({4});
  Node node = cells.dynamic(1000, 4), beside = cells.dynamic(1000, 16);
  Field<int> of_cell = cells.place<int>("cell"), x = node.place<int>("x"), sum = node.place<int>("sum"),
             other = beside.place<int>("other");
  coords = {1, 0, 0, 3, 0, 0}, length = {9, 2};
  run(fill_lists1, lists(), x, coords, length);
  length = {3, 7};
  run(fill_lists1, lists(), other, coords, length);
  run(set_cells1, over(cells), of_cell);
  run(gather_for_entries, over(node), x, of_cell, other, sum);
  for (int at : {1, 3}) {
    std::vector<int> expected;
    const std::vector<int> own = wait_read_list(x, at), second = wait_read_list(other, at);
    for (size_t k = 0; k < own.size(); ++k)
      expected.push_back(own[k] + 1000 * (at + 1) + 100 * (k < second.size() ? second[k] : 0));
    EXPECT_EQ(wait_read_list(sum, at), expected);
  }
}

TEST_P(Entries, ALoopRunsOverWhatTheListsHoldByThen) {
  Tree tree(device);
  Node node = tree.root().dense({4}).dynamic(1000, 4);
  Field<int> x = node.place<int>("x");
  coords = {0, 0, 0, 2, 0, 0}, length = {5, 9};
  auto count = [&] {
    CoppiceVisits visits{};
    run(visit1, over(node), x, inout(visits));
    return visits.entries;
  };
  EXPECT_EQ(count(), 0u);
  run(fill_lists1, lists(), x, coords, length);
  EXPECT_EQ(count(), 14u);
  run(fill_lists1, lists(), x, coords, length);
  EXPECT_EQ(count(), 28u);
  run(clear_one_list, range(1), x, 2);
  EXPECT_EQ(count(), 10u);
}

TEST_P(Entries, LoopsThatDoNotFitAreRefusedInOneLine) {
  Tree tree(device), elsewhere(device, {.name = "elsewhere"});
  Node cells = tree.root().dense({4}), node = cells.dynamic(100, 4), beside = cells.dynamic(100, 4);
  Field<int> of_cell = cells.place<int>("cell"), x = node.place<int>("x"), y = beside.place<int>("y"),
             z = elsewhere.root().dense({4}).dynamic(100, 4).place<int>("z");
  CoppiceVisits visits{};
  uint64_t n = 0;
  EXPECT_EQ(refusal(visit1, over(cells), x, inout(visits)),
            "kernel loops.visit1: it takes an Entry and loops over a dynamic node: over(lists); "
            "tree.dense[4] is none");
  EXPECT_EQ(refusal(visit1, range(3), x, inout(visits)),
            "kernel loops.visit1: it takes an Entry and loops over a dynamic node: over(lists)");
  EXPECT_EQ(
      refusal(set_cells1, over(node), x),
      "kernel loops.set_cells1: it takes a Cell or Block, and tree.dense[4].dynamic[100] is a dynamic node, "
      "which is looped over with an Entry");
  EXPECT_EQ(refusal(count_blocks1, over(node), x, inout(n)),
            "kernel loops.count_blocks1: it takes a Cell or Block, and tree.dense[4].dynamic[100] is a "
            "dynamic node, "
            "which is looped over with an Entry");
  EXPECT_EQ(refusal(visit1, over(node), y, inout(visits)),
            "kernel loops.visit1: it writes field 'y' on tree.dense[4].dynamic[100], which is not on the "
            "node looped "
            "over, tree.dense[4].dynamic[100]");
  EXPECT_EQ(
      refusal(visit1, over(node), z, inout(visits)),
      "kernel loops.visit1: it writes field 'z' on elsewhere.dense[4].dynamic[100], which is not on the node "
      "looped over, tree.dense[4].dynamic[100]");
  EXPECT_EQ(refusal(visit2, over(node), x, inout(visits)),
            "kernel loops.visit2: it loops in 2 dimensions, tree 'tree' has 1");
  EXPECT_EQ(refusal(pass_along, over(node), nullptr, nullptr),
            "kernel loops.pass_along: it takes a Team and loops over a range: range(n)");
}

class Teams : public LoopTest {};

TEST_P(Teams, TheLanesOfATeamShareAnItem) {
  const int n = 1000, rows = 40;
  std::vector<int> numbers(n * rows);
  std::iota(numbers.begin(), numbers.end(), 1);
  std::vector<uint64_t> sums(rows);
  std::vector<uint32_t> lanes(rows);
  run(sum_rows, range(3, rows), n, numbers, sums, lanes);
  for (int row = 0; row < rows; ++row) {
    const auto first = static_cast<uint64_t>(row) * n;
    EXPECT_EQ(sums[row], row < 3 ? 0u : n * first + n * (n + 1) / 2) << row;
    EXPECT_EQ(lanes[row], row < 3 ? 0u : lanes[rows - 1]) << row;
  }
  if (device->shares_items())
    EXPECT_GT(lanes[rows - 1], 1u);
  else
    EXPECT_EQ(lanes[rows - 1], 1u);
}

TEST_P(Teams, ABarrierMakesWritesSeenByTheOthers) {
  std::vector<uint32_t> room(20 * 1024);
  uint32_t wrong = 0;
  run(pass_along, range(20), room, inout(wrong));
  EXPECT_EQ(wrong, 0u);
}

// Seen to fail on simt without the barrier that ends a block, and when items were
// given to threads instead of blocks.
TEST_P(Teams, ShareABlockAndItsFastMemory) {
  Tree tree(device);
  Node leaf = tree.root().pointer({32}).dense({64});
  Field<int> from = leaf.place<int>("from"), to = leaf.place<int>("to");
  std::vector<std::array<int32_t, 3>> coords;
  for (int block = 0; block < 32; block += 3) coords.push_back({64 * block, 0, 0});
  finish(leaf.activate(coords));
  run(set_to_coordinate, over(leaf), from);
  uint32_t threads = 0;
  run(reverse_blocks, over(leaf), from, to, inout(threads));
  EXPECT_EQ(threads % coords.size(), 0u);
  EXPECT_GE(threads, coords.size());
  for (const auto& c : coords) {
    const std::vector<int> values = wait_read(to, {c[0]}, {c[0] + 64});
    for (int i = 0; i < 64; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], c[0] + 63 - i);
  }
}

class Ranges : public LoopTest {};

// Seen to fail on simt: a thread stepped past the largest int64, and ran items from the smallest on.
TEST_P(Ranges, MayBeginAndEndAtTheEndsOfTheirNumbers) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();
  Tree tree(device);
  Field<int> list = tree.root().pointer({4}).dynamic(1024).place<int>("list");
  uint64_t appended = 0;
  for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{kLast - 3, kLast},
                                                                           {kLast - 300, kLast},
                                                                           {kLast - 70, kLast - 67},
                                                                           {kFirst, kFirst + 3},
                                                                           {-2, 1},
                                                                           {kLast, kLast}}) {
    SCOPED_TRACE(begin);
    const auto n = static_cast<size_t>(end - begin);
    std::vector<uint32_t> runs(n + 8);
    run(count_item, range(begin, end), begin, inout(runs));
    run(count_team, range(begin, end), begin, inout(runs));
    run(append_item, range(begin, end), list, begin, inout(runs));
    for (size_t i = 0; i < runs.size(); ++i) ASSERT_EQ(runs[i], i < n ? 3u : 0u) << i;
    EXPECT_EQ(wait_read_list(list, 0).size(), appended += n);
  }
}

// Seen to fail when the tail's bytes were taken to begin at the last multiple of 4 of the length.
TEST(Lanes, ZeroExactlyTheBytesTheyAreGiven) {
  alignas(8) unsigned char room[96];
  for (uint32_t count : {1u, 2u, 3u, 32u, 64u}) {
    for (uint64_t first = 8; first < 16; ++first) {
      for (uint64_t n = 0; n <= 70; ++n) {
        std::fill(std::begin(room), std::end(room), 0xee);
        for (uint32_t lane = 0; lane < count; ++lane) device::zero_bytes_by({lane, count}, room + first, n);
        for (uint64_t at = 0; at < sizeof room; ++at)
          ASSERT_EQ(room[at], at >= first && at < first + n ? 0 : 0xee) << count << " " << first << " " << n;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Entries, testing::ValuesIn(test_devices_by_threads()), device_test_name);
INSTANTIATE_TEST_SUITE_P(Devices, Teams, testing::ValuesIn(test_devices_by_threads()), device_test_name);
INSTANTIATE_TEST_SUITE_P(Devices, Ranges, testing::ValuesIn(test_devices_by_threads()), device_test_name);

}  // namespace
}  // namespace coppice
