// Launches that need room, or find no more: what effects_conformance_test.cc leaves out. Each was written for
// a planted break (tests/mutations) that no other test saw.
#include <algorithm>

#include "core/error.h"
#include "heat.kernels.h"
#include "room.kernels.h"
#include "sparse/bulk_append.h"
#include "sparse/read_back.h"
#include "sparse/uses.h"
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

constexpr int kWidth = 1024;  // cells of a block: 4 KiB, so that 15 of them are there at first

class Rooms : public Conformance {
 protected:
  struct Blocks {
    explicit Blocks(const IntrusivePtr<Device>& device, uint64_t max_bytes = 0)
        : tree(device, {.name = "room", .max_bytes = max_bytes}), block(tree.root().pointer({8192})) {
      x = block.dense({kWidth}).place<int>("x");
    }
    Tree tree;
    Node block;
    Field<int> x;
  };
  // Returns the error of a launch that fails; nothing where it does not. The device goes on.
  template <class Kernel, class... Arguments>
  std::string error_of(const Kernel& kernel, const Loop& loop, Arguments&&... arguments) {
    try {
      run(kernel, loop, std::forward<Arguments>(arguments)...);
    } catch (const Error& e) {
      device->default_stream().clear_error();
      return e.what();
    }
    return "";
  }
  // Where memory is mapped before a launch, one that needs more cells than there are, and for which none can
  // be mapped, is refused and says so.
  void expect_refused(const std::string& error, const std::string& why) {
    if (device->commits_on_touch())
      EXPECT_EQ(error, "");
    else
      EXPECT_NE(error.find(why), std::string::npos) << "wanted: " << why << "\nfound: " << error;
  }
};

// Seen before: room for a cell of each of 65,536 deactivations, of 64 cells.
TEST_P(Rooms, IsForWhatCanComeAgain) {
  Blocks b(device);
  std::vector<std::array<int32_t, 3>> first;
  for (int k = 0; k < 64; ++k) first.push_back({k, 0, 0});
  finish(b.block.activate(first));
  run(set_one, range(1), b.x, 5 * kWidth);
  run(drop_or_go_on, over(detail::node_of(b.x.tree, b.x.id.node)), b.x, b.block.topology());
  EXPECT_TRUE(b.block.wait_is_active({105}));
  EXPECT_EQ(b.block.wait_num_active_cells(), 1u);
  EXPECT_LE(b.block.wait_usage().capacity_cells, 256u);
}

// A list of which there is much has room made behind its end, as often as it is appended
// to, and no more than it takes.
TEST_P(Rooms, RoomForAListBeginsWhereItEnds) {
  Tree tree(device);
  Node list = tree.root().dynamic(1 << 16, 4);  // 4 KiB a chunk, 15 of them at first
  Field<Wide> v = list.place<Wide>("v");
  uint64_t length = 0;
  for (const int more : {40, 60, 60}) {
    run(append_wide, range(more), v, static_cast<int>(length));
    length += static_cast<uint64_t>(more);
    EXPECT_EQ(list.wait_length({0}), length);
    EXPECT_EQ(list.wait_usage().active_cells, length / 4);
  }
  std::vector<int> numbers;
  for (const Wide& wide : wait_read_list(v, 0)) numbers.push_back(wide.at[0]);
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, iota(static_cast<int>(length)));
}

// Chunks of lists that a launch empties are free only behind it. How many an allocator has beyond what is
// needed is its own affair: of these numbers of lists most have too few for twice as many.
TEST_P(Rooms, ForListsThatAreEmptiedIsMadeForAllThatTheyGetAnew) {
  for (const int lists : {3, 6, 10, 13}) {
    Tree tree(device);
    Node list = tree.root().dense({lists}).dynamic(1 << 16, 4);
    Field<Wide> v = list.place<Wide>("v");
    for (int round = 0; round < 3; ++round) run(renew_list, range(lists), v);
    EXPECT_EQ(list.wait_length({lists - 1, 0, 0}), 16u);
    EXPECT_EQ(list.wait_usage().active_cells, static_cast<uint64_t>(4 * lists));
  }
}

TEST_P(Rooms, WhoeverAsksWhatIsActiveIsNotAskedTwice) {
  Blocks room(device);
  std::vector<int> was_new(100, 7);
  const std::string error = error_of(tell_new, range(100), room.block.topology(), was_new);
  expect_refused(
      error, "since it tests which cells are active and activates cells of room.pointer[8192]; make room");
  if (!error.empty()) {
    wait(room.block.deactivate_all());
    wait(room.block.reserve(100));
    run(tell_new, range(100), room.block.topology(), was_new);
  }
  EXPECT_EQ(was_new, std::vector<int>(100, 1));
}

// Seen to fail: the cells of the tree that is asked were said to be tested and activated, twice.
TEST_P(Rooms, WhatIsToldForTheKernelIsSaidOnceAndOfAllItsHandles) {
  Tree tree(device, {.name = "asked"});
  Node asked = tree.root().pointer({64});
  asked.dense({1}).place<int>("x");
  Blocks grown(device);
  expect_refused(error_of(ask_and_grow, range(60), asked.topology(), grown.block.topology()),
                 "cannot be repeated, since it tests which cells are active and activates cells (of "
                 "asked.pointer[64] and room.pointer[8192]; which of them is not told); make room before it");
}

TEST_P(Rooms, TeamsHaveNoneMade) {
  Tree tree(device);
  Node leaf = tree.root().pointer({64}).dense({1});
  leaf.place<int>("x");
  std::vector<std::array<int32_t, 3>> coords;
  for (int i = 0; i < 50; ++i) coords.push_back({i, 0, 0});
  wait(leaf.activate(coords));
  Blocks room(device);
  uint32_t counter = 0;
  const std::string error = error_of(teams_grow, over(leaf), room.block.topology(), inout(counter));
  expect_refused(error, "shares fast memory among threads");
}

// How much of what lies below comes again cannot be told.
TEST_P(Rooms, CellsThatGoWithThoseAboveHaveNoneMade) {
  Tree tree(device, {.name = "room"});
  Node above = tree.root().pointer({64}), below = above.pointer({16});
  below.dense({kWidth}).place<int>("x");
  run(renew_below, range(12), above.topology(), below.topology(), 16);
  EXPECT_EQ(below.wait_num_active_cells(), 12u);
  expect_refused(
      error_of(renew_below, range(12), above.topology(), below.topology(), 16),
      "since it deactivates cells (of room.pointer[64] and room.pointer[64].pointer[16]; which of them "
      "is not told) and may activate cells anew below those of room.pointer[64] that it deactivates; ");
}

// Cells that go and come again take as much room the tenth time as the first.
TEST_P(Rooms, ForWhatIsRenewedDoesNotAddUp) {
  Blocks room(device);
  run(renew, range(20), room.block.topology());
  run(renew, range(20), room.block.topology());
  const uint64_t cells = room.block.wait_usage().capacity_cells;
  for (int round = 0; round < 8; ++round) run(renew, range(20), room.block.topology());
  EXPECT_EQ(room.block.wait_num_active_cells(), 20u);
  EXPECT_LE(room.block.wait_usage().capacity_cells, cells);
}

TEST_P(Rooms, CopiesByPointerHappenOnce) {
  Blocks room(device);
  std::vector<Wide> a(30), b(30), c(30);
  for (int i = 0; i < 30; ++i) a[i].at[255] = i, b[i].at[255] = 100 + i;
  run(shift_and_grow, range(30), room.block.topology(), a, b, c);
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(b[i].at[255], i);
    EXPECT_EQ(c[i].at[255], 100 + i);
  }
  EXPECT_EQ(room.block.wait_num_active_cells(), 30u);
}

// Each of these must activate what a serial run does, and nothing that an earlier value would.
TEST_P(Rooms, WhatALaunchChangesIsNotActivatedTooEarly) {
  Tree tree(device);
  Node cells = tree.root().dense({8});
  Field<int> x = cells.place<int>("x"), y = cells.place<int>("y"), z = cells.place<int>("z");
  Blocks room(device), other(device);
  run(age_and_move, over(cells), x, room.block.topology());
  EXPECT_EQ(room.block.wait_num_active_cells(), 1u);
  EXPECT_TRUE(room.block.wait_is_active({10, 0, 0}));
  run(age_by_array, over(cells), y, other.block.topology(), 1);
  EXPECT_EQ(other.block.wait_num_active_cells(), 0u);
  for (int i = 0; i < 8; ++i) write1(z, {i});  // all are 1
  run(write_then_ask, over(cells), z, z, other.block.topology());
  EXPECT_EQ(other.block.wait_num_active_cells(), 0u);
}

TEST_P(Rooms, WhatALibrarysFunctionStoresIsTouched) {
  Blocks room(device);
  const Launch launch =
      program().make_launch(split_to, range(1), room.block.topology(), static_cast<const double*>(nullptr),
                            static_cast<double*>(nullptr));
  EXPECT_NE(text_of(*launch.uses).find("  reads, stores the memory of argument 3\n"), std::string::npos)
      << text_of(*launch.uses);
  EXPECT_NE(why_not_repeatable(*launch.uses), "");
}

TEST_P(Rooms, ALoopSeesWhatWasAppendedInBulk) {
  Tree tree(device);
  Node lists = tree.root().dense({4}).dynamic(256, 8);
  Field<int> x = lists.place<int>("x");
  run(write_element, range(1), x, 0, 2);
  std::vector<int32_t> coords;
  for (int i = 0; i < 60; ++i) coords.insert(coords.end(), {0, 0, i % 4});
  const auto where = wait_device_copy(*device, coords);
  const auto values = wait_device_copy(*device, std::vector<int>(60, 5));
  for (const uint32_t expected : {3u, 63u, 123u}) {
    uint32_t visits = 0;
    run(visit_entries, over(lists), x, inout(visits));
    EXPECT_EQ(visits, expected);
    const auto done = append(x, where->as<int32_t>(), values->as<int>(), 60);
    wait(done);
    ASSERT_FALSE(done.is_error()) << done.error().what();
  }
}

TEST_P(Rooms, WhatPointersInStructsLeadToIsTouched) {
  Blocks room(device);
  const Launch launch =
      program().make_launch(count_behind_a_member, range(1), room.block.topology(), CountedBy{},
                            static_cast<uint32_t*>(nullptr), static_cast<const int*>(nullptr));
  EXPECT_EQ(text_of(*launch.uses),
            "  activates the cells of room.pointer[8192] as Grow, anywhere, in the order of the items\n"
            "  reads, changes the memory of argument 3\n"
            "  reads the memory of argument 4\n"
            "  reads, changes memory behind members of its arguments\n");
}

// A launch that fails for another reason may have been short of cells, too. The next one needs none.
TEST_P(Rooms, AShortageEndsWithItsLaunch) {
  Blocks room(device, 64 << 10);
  write1(room.x, {0});
  std::vector<int> coords{-5};
  for (int i = 0; i < 60; ++i) coords.push_back(i * kWidth);
  EXPECT_NE(error_of(write_at1, range(61), room.x, coords, 2), "");
  EXPECT_EQ(error_of(write_at1, range(1), room.x, std::vector<int>{0}, 3), "");
  EXPECT_EQ(read1(room.x, {0}), std::vector<int>{3});
}

// A write by index that finds no memory leaves chunks behind the list's end, which no loop visits.
TEST_P(Rooms, ChunksBehindAListsEndAreNotVisited) {
  Tree tree(device, {.max_bytes = 128 << 10});
  Node lists = tree.root().dense({2}).dynamic(1 << 20, 64);
  Field<int> x = lists.place<int>("x");
  run(write_element, range(1), x, 0, 2);
  EXPECT_NE(error_of(write_element, range(1), x, 0, (1 << 20) - 1), "");
  EXPECT_EQ(lists.wait_length({0}), 3u);
  uint32_t visits = 0;
  run(visit_entries, over(lists), x, inout(visits));
  EXPECT_EQ(visits, 3u);
  run(write_element, range(1), x, 0, 70);
  EXPECT_EQ(lists.wait_length({0}), 71u);
}

// All nodes of a tree have its memory together: what was refused to one with large cells is left for another.
TEST_P(Rooms, OfATreeIsSharedByItsNodes) {
  Tree tree(device, {.name = "small", .max_bytes = 1 << 20});
  Node one = tree.root().pointer({4096}), other = tree.root().pointer({4096});
  Field<int> x = one.dense({kWidth}).place<int>("x");
  Field<int> y = other.dense({64 * kWidth}).place<int>("y");  // cells of 256 KiB
  const auto blocks = [](int first, int end, int cells) {
    std::vector<int> coords;
    for (int i = first; i < end; ++i) coords.push_back(i * cells);
    return coords;
  };
  write1(x, blocks(0, 100, kWidth));
  const std::string error = error_of(write_at1, range(16), y, blocks(0, 16, 64 * kWidth), 1);
  EXPECT_NE(error.find("small.pointer[4096] is full"), std::string::npos) << error;
  if (!device->commits_on_touch()) return;
  EXPECT_EQ(other.wait_num_active_cells(), 1u);
  write1(x, blocks(100, 120, kWidth));
  EXPECT_EQ(one.wait_num_active_cells(), 120u);
  EXPECT_NE(error_of(write_at1, range(300), x, blocks(120, 420, kWidth), 1), "");
  EXPECT_LE(one.wait_num_active_cells(), 128u);
}

// Cells far apart in a domain of 2^44 of them: their keys have more than 32 bits.
TEST_P(Rooms, LoopsOfLargeDomainsAreInOrder) {
  Tree tree(device);
  Node leaf = tree.root().pointer({1 << 10, 1 << 10}).pointer({1 << 10, 1 << 10}).dense({2, 2});
  Field<int> x = leaf.place<int>("x");
  constexpr int kSide = 2 << 10;  // of an upper block, in cells
  write2(x, {8 * kSide, 0, 0, 900 * kSide, 0, 0, 16 * kSide, 2, 1, 5 * kSide});
  ASSERT_EQ(leaf.wait_num_active_blocks(), 5u);
  std::vector<int> origins(10, -1);
  run(list_blocks2, over(leaf), origins);
  EXPECT_EQ(origins, (std::vector<int>{0, 0, 0, 5 * kSide, 0, 900 * kSide, 8 * kSide, 0, 16 * kSide, 2}));
}

// The list is made anew by a loop that needs no neighbours, and their table by the next one that does.
TEST_P(Rooms, NeighboursThatCameAreSeen) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16}).dense({4});
  Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  write1(x, {3}, 1);
  run(add_neighbours, over(leaf), x, y);
  EXPECT_EQ(read1(y, {3}), std::vector<int>{2});
  write1(x, {4}, 5);
  EXPECT_EQ(sum(leaf, x), 6u);
  run(add_neighbours, over(leaf), x, y);
  EXPECT_EQ(read1(y, {3, 4}), (std::vector<int>{7, 11}));
}

TEST_P(Rooms, ALoopSeesWhatWasAppendedToAChunk) {
  Tree tree(device);
  Node list = tree.root().dynamic(1 << 16, 64);
  Field<Wide> v = list.place<Wide>("v");
  for (uint32_t length = 1; length < 4; ++length) {
    run(append_wide, range(1), v, 0);
    uint32_t visits = 0;
    run(count_entries, over(list), v, inout(visits));
    EXPECT_EQ(visits, length);
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, Rooms, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
