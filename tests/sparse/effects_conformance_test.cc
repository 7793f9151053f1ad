// Nothing lost, nothing twice: what a launch does happens once, also where it must make
// room for its cells on the way.
//
// Each test gives its launch little room: allocators begin with some 64 KiB, and blocks here are
// large. Where a launch that must not be repeated cannot find its room beforehand, the test expects
// the one Error that says so, and that the tree can be read after it; with reserve() the same
// launch does what it does elsewhere.
#include <algorithm>

#include "core/error.h"
#include "effects.kernels.h"
#include "lists.kernels.h"
#include "sparse/read_back.h"
#include "sparse/uses.h"
#include "tests/sparse/conformance_fixture.h"
#include "tests/sparse/traced.h"

namespace coppice {
namespace {

constexpr int kWidth = 1024;  // cells of a block: 4 KiB, so that 15 of them are there at first

class Effects : public Conformance {
 protected:
  // A tree that is short of room.
  struct Room {
    explicit Room(const IntrusivePtr<Device>& device)
        : tree(device, {.name = "room"}), block(tree.root().pointer({8192})), leaf(block.dense({kWidth})) {
      x = leaf.place<int>("x");
    }
    Tree tree;
    Node block, leaf;
    Field<int> x;
  };
  // Launches what must not be repeated: where memory is mapped before a launch, and what it needs cannot be
  // told, the first time is an Error that names kernel, node and what to do; then there is room.
  template <class Kernel, class... Arguments>
  void run_with_reserve(const Node& node, uint64_t cells, const char* kernel, const Kernel& given,
                        const Loop& loop, Arguments&&... arguments) {
    if (!device->commits_on_touch()) {
      try {
        run(given, loop, std::forward<Arguments>(arguments)...);
        ADD_FAILURE() << "no error";
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
        const std::string message = e.what();
        for (const std::string& part : {std::string(kernel), node.path(), std::string("reserve(n)")})
          EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
      }
      device->default_stream().clear_error();
      is_refused = true;
      wait(node.reserve(cells));
      return;
    }
    run(given, loop, std::forward<Arguments>(arguments)...);
  }
  static ErrorCode error_code_of(const AsyncValueRef<Chain>& done) {
    EXPECT_TRUE(done.is_error());
    return done.is_error() ? done.error().code() : ErrorCode{};
  }
  bool is_refused = false;
  int n() const { return is_emulated() ? 200 : 2000; }
};

// Seen: 4,000 elements after 2,000 appends, when only the other tree was short.
TEST_P(Effects, AppendsToOneTreeAndGrowthOfAnother) {
  Tree lists(device);
  Node list = lists.root().dense({1}).dynamic(1 << 20, 64);
  Field<int> v = list.place<int>("v");
  Room room(device);
  run(append_and_grow, range(n()), v, room.block.topology(), 4);
  std::vector<int> values = wait_read_list(v, 0);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(values, iota(n()));
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

// Seen: 11,076 elements in lists of up to 4.
TEST_P(Effects, OneAppendEachIntoListsWhoseUpperCellsAreNew) {
  const int side = is_emulated() ? 16 : 64;
  Tree tree(device);
  Node list = tree.root().pointer({8, 8}).pointer({8, 8}).dense({1, 1}).dynamic(1024, 512);
  Field<int> v = list.place<int>("v");
  run(append_one_each2, range(side * side), v, side);
  for (int i = 0; i < side * side; ++i)
    ASSERT_EQ(wait_read_list(v, std::array<int32_t, 3>{i / side, i % side, 0}), std::vector<int>{i});
}

// Seen: x + 1 gives x + 2.
TEST_P(Effects, ReadAndWriteOfTheOwnCellBesideGrowth) {
  Tree tree(device);
  Node leaf = tree.root().dense({n()});
  Field<int> x = leaf.place<int>("x");
  Room room(device);
  run(increase_and_grow, over(leaf), x, x, room.block.topology(), 4);
  EXPECT_EQ(wait_read(x, {0}, {n()}), std::vector<int>(n(), 1));
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

TEST_P(Effects, UpdatesAndSumsBesideGrowth) {
  Tree tree(device);
  Node leaf = tree.root().dense({n()}), one = tree.root().dense({1});
  Field<int> x = leaf.place<int>("x"), sum = one.place<int>("sum");
  Room room(device), other(device);
  run(update_and_grow, over(leaf), x, room.block.topology(), 4);
  EXPECT_EQ(wait_read(x, {0}, {n()}), std::vector<int>(n(), 1));
  run(add_and_grow, range(n()), sum, other.block.topology(), 4);
  EXPECT_EQ(wait_read(sum, {0}), n());
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
  EXPECT_EQ(other.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

// Seen: 10,000 for 5,000.
TEST_P(Effects, ACounterByPointerBesideGrowth) {
  Room room(device);
  uint32_t counter = 0;
  run(count_and_grow, range(n()), room.block.topology(), 4, inout(counter));
  EXPECT_EQ(counter, static_cast<uint32_t>(n()));
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

TEST_P(Effects, ValuesChangedByPointerBesideGrowth) {
  Room room(device);
  std::vector<int> values(n(), 1000);
  run(halve_and_grow, range(n()), room.block.topology(), 4, values);
  EXPECT_EQ(values, std::vector<int>(n(), 500));
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

// A loop that its own stores end cannot be run without them.
TEST_P(Effects, ALoopThatItsOwnStoresEndBesideGrowth) {
  Room room(device);
  std::vector<int> values(n(), 1000);
  run_with_reserve(room.block, n(), "effects.halve_until_and_grow", halve_until_and_grow, range(n()),
                   room.block.topology(), 4, values);
  if (is_refused) run(halve_until_and_grow, range(n()), room.block.topology(), 4, values);
  EXPECT_EQ(values, std::vector<int>(n(), 3));
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

TEST_P(Effects, WhereAnItemGoesIsKnownOnlyByAnAtomicOperation) {
  Room room(device);
  uint32_t counter = 0;
  run_with_reserve(room.block, 2 * n(), "effects.draw_and_grow", draw_and_grow, range(n()),
                   room.block.topology(), 4, inout(counter));
  if (is_refused) {
    counter = 0;
    EXPECT_LT(room.block.wait_num_active_cells(), static_cast<uint64_t>(n())) << "readable, and what fitted";
    run(draw_and_grow, range(n()), room.block.topology(), 4, inout(counter));
  }
  EXPECT_EQ(counter, static_cast<uint32_t>(n()));
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}

// Seen: 124 of 900 blocks left.
TEST_P(Effects, BlocksThatMoveWhereTheyAreFoundActive) {
  const int blocks = n() / 2;
  Room room(device);
  run(activate_all, range(blocks), room.block.topology(), 1);
  run_with_reserve(room.block, 2 * blocks, "effects.move_block", move_block, range(blocks),
                   room.block.topology(), 4000);
  if (is_refused) {  // those that were moved before room ran out are where they were moved to
    run(activate_all, range(blocks), room.block.topology(), 1);
    run(move_block, range(blocks), room.block.topology(), 4000);
  }
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(blocks));
  EXPECT_TRUE(room.block.wait_is_active({4000, 0, 0}) &&
              room.block.wait_is_active({4000 + blocks - 1, 0, 0}));
  EXPECT_FALSE(room.block.wait_is_active({0, 0, 0}));
}

TEST_P(Effects, BlocksThatMoveUnasked) {
  const int blocks = n() / 2;
  Room room(device);
  run(activate_all, range(blocks), room.block.topology(), 1);
  run(move_known_block, range(blocks), room.block.topology(), 4000);
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(blocks));
  EXPECT_TRUE(room.block.wait_is_active({4000, 0, 0}) &&
              room.block.wait_is_active({4000 + blocks - 1, 0, 0}));
}

// Seen: 3,192 of 5,000.
TEST_P(Effects, ValuesThatMoveByAtAndSet) {
  const int blocks = n() / 2;
  Room room(device);
  run(set_numbers, range(blocks), room.x, kWidth);
  run(move_value, range(blocks), room.x, room.x, room.block.topology(), kWidth, 4000);
  std::vector<int> coords, expected;
  for (int b = 0; b < blocks; ++b) coords.push_back((4000 + b) * kWidth), expected.push_back(b + 1);
  EXPECT_EQ(read1(room.x, coords), expected);
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(blocks));
}

// Seen: 1,365 of 4,096.
TEST_P(Effects, BitmaskedCellsThatMoveToAnotherTree) {
  Tree tree(device);
  Node leaf = tree.root().pointer({64}).bitmasked({64});
  leaf.place<int>("x");
  const int cells = is_emulated() ? 256 : 4096;
  run(activate_all, range(cells), leaf.topology(), 1);
  Room room(device);
  run(move_to_tree, over(leaf), leaf.topology(), room.block.topology(), 2);
  EXPECT_EQ(leaf.wait_num_active_cells(), 0u);
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(cells));
}

// The run that makes room draws the numbers that the launch draws.
TEST_P(Effects, RandomNumbersAreThoseOfALaunchWithRoom) {
  const auto values_of = [&](uint64_t reserved) {
    auto fresh = device->name() == "cpu" ? Device::cpu(4) : Device::named(device->name());
    Program p(fresh);
    Tree lists(fresh);
    Field<float> v = lists.root().dense({1}).dynamic(1 << 20, 64).place<float>("v");
    Room room(fresh);
    wait(room.block.reserve(reserved));
    wait(p.launch(append_random_and_grow, range(n()), v, room.block.topology(), 4));
    std::vector<float> values = wait_read_list(v, 0);
    std::sort(values.begin(), values.end());
    return values;
  };
  const std::vector<float> once = values_of(8000);
  EXPECT_EQ(once.size(), static_cast<size_t>(n()));
  EXPECT_EQ(values_of(1), once);
}

TEST_P(Effects, ListsThatAreEmptiedAndAppendedToMakeRoomForBoth) {
  const int lists = n();
  Tree tree(device);
  Node list = tree.root().dense({lists}).dynamic(1024, 512);
  Field<int> v = list.place<int>("v");
  for (int round = 0; round < 3; ++round) run(clear_and_append, range(lists), v);
  for (int k : {0, 1, lists - 1})
    EXPECT_EQ(wait_read_list(v, k), (std::vector<int>{10 * k, 10 * k + 1, 10 * k + 2})) << k;
  uint64_t total = 0;
  for (int k = 0; k < lists; ++k) total += list.wait_length({k, 0, 0});
  EXPECT_EQ(total, 3u * static_cast<uint64_t>(lists));
}

// The same in recordings, where the host learns of the shortage only behind the replays.
TEST_P(Effects, RecordedLaunchesHappenOnce) {
  Tree lists(device);
  Node list = lists.root().dense({1}).dynamic(1 << 20, 64);
  Field<int> v = list.place<int>("v");
  Room room(device);
  Function function = traced({program().bind(append_and_grow, range(n()), v, room.block.topology(), 4),
                              program().bind(append_and_grow, range(n()), v, room.block.topology(), 1)});
  const AsyncValueRef<Chain> done = function.run(3);
  wait(done);
  ASSERT_FALSE(done.is_error()) << done.error().what();
  std::vector<int> values = wait_read_list(v, 0), expected;
  std::sort(values.begin(), values.end());
  for (int i = 0; i < n(); ++i) expected.insert(expected.end(), 6, i);
  EXPECT_EQ(values, expected);
}

TEST_P(Effects, WhatReserveIsForAndWhatNot) {
  Room room(device);
  EXPECT_NE(
      [&] {
        const auto done = room.leaf.reserve(10);
        wait(done);
        return std::string(done.is_error() ? done.error().what() : "");
      }()
          .find("reserve() is for pointer and dynamic nodes"),
      std::string::npos);
  device->default_stream().clear_error();
  Tree small(device, {.name = "small", .max_bytes = 1 << 20});
  Node block = small.root().pointer({8192});
  block.dense({kWidth}).place<int>("x");
  const auto done = block.reserve(8000);
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(std::string(done.error().what()).find("small.pointer[8192] is full"), std::string::npos)
      << done.error().what();
  device->default_stream().clear_error();
}

// A run that only makes room must activate what the launch will, and nothing else. Each of these was seen to
// leave cells active that no serial run has.
TEST_P(Effects, VariablesOfAKernelStayItsOwnInFunctionsThatAreNotInlined) {
  Room room(device);
  uint32_t counter = 0;
  run(grow_by_helpers, range(50), room.block.topology(), inout(counter));
  EXPECT_EQ(counter, 50u);
  EXPECT_EQ(room.block.wait_num_active_cells(), 50u);
}
TEST_P(Effects, WhatALaunchChangesDoesNotDecideTooEarly) {
  Tree tree(device);
  Node cells = tree.root().dense({50});
  Field<int> x = cells.place<int>("x");
  run(update_and_grow, over(cells), x, Room(device).block.topology(), 1);  // all are 1
  Room room(device);
  run(age_and_grow, over(cells), x, room.block.topology());
  EXPECT_EQ(room.block.wait_num_active_cells(), 0u);
  std::vector<int> ones(50, 1), others(50, 1);
  run(age_and_grow_by_pointer, range(50), room.block.topology(), ones, others);
  EXPECT_EQ(room.block.wait_num_active_cells(), 0u);
  EXPECT_EQ(ones, std::vector<int>(50, 0));
  run(own_value_grows, over(cells), x, x, room.block.topology());
  EXPECT_EQ(room.block.wait_num_active_cells(), 0u);
  EXPECT_EQ(wait_read(x, {0}, {50}), std::vector<int>(50, -1));
}
TEST_P(Effects, IndicesAndLengthsOfListsDoNotDecideTooEarly) {
  Tree tree(device);
  Node one = tree.root().dense({1}).dynamic(1 << 20, 64), many = tree.root().dense({64}).dynamic(64, 64);
  Field<int> v = one.place<int>("v"), w = many.place<int>("w");
  Room room(device), other(device);
  run(first_grows, range(n()), v, room.block.topology());
  EXPECT_EQ(room.block.wait_num_active_cells(), 1u);
  run(empty_grows, range(64), w, other.block.topology());
  EXPECT_EQ(other.block.wait_num_active_cells(), 0u);
}
TEST_P(Effects, RecordedLaunchesDecideWhenTheirTurnComes) {
  Room room(device);
  std::vector<int> places;
  for (int i = 0; i < 10; ++i) places.push_back(100 * i);
  const auto x = wait_device_copy(*device, places);
  const auto counter = wait_device_copy(*device, std::vector<uint32_t>{0});
  Function function = traced({program().bind(add_ten, range(10), x->as<int>()),
                              program().bind(grow_where_told, range(10), room.block.topology(), x->as<int>(),
                                             counter->as<uint32_t>())});
  wait(function.run(1));
  EXPECT_EQ(room.block.wait_num_active_cells(), 10u);
  EXPECT_TRUE(room.block.wait_is_active({10, 0, 0}));
}
// The first replay needs no room, the second needs all of it for cells that it removes and activates anew.
TEST_P(Effects, RecordedLaunchesMakeRoomForWhatTheyRenew) {
  Room room(device);
  Tree told(device);
  Node one = told.root().dense({1});
  Field<int> n = one.place<int>("n");
  const auto counter = wait_device_copy(*device, std::vector<uint32_t>{0});
  run(activate_all, range(12), room.block.topology(), 1);
  Function function =
      traced({program().bind(renew_some, range(12), room.block.topology(), n, counter->as<uint32_t>())});
  wait(function.run(1));
  run(write_at1, range(1), n, std::vector<int>{0}, 12);
  const auto done = function.run(1);
  wait(done);
  ASSERT_FALSE(done.is_error()) << done.error().what();
  uint32_t counted = 0;
  device->wait_copy(&counted, counter->data(), sizeof counted);
  EXPECT_EQ(counted, 12u);
  EXPECT_EQ(room.block.wait_num_active_cells(), 12u);
}
TEST_P(Effects, RoomForListsIsNoMoreThanTheyTake) {
  Tree tree(device);
  Node block = tree.root().pointer({Axis::i}, {4096});
  Node lists = block.dense({Axis::j}, {4}).dynamic(1 << 20, 64);
  block.dense({Axis::j}, {1024}).place<int>("padding");
  Field<int> v = lists.place<int>("v");
  run(append_to_parts, range(64 * 100), v, 64);
  EXPECT_EQ(lists.wait_usage().active_cells, 100u);
}
// It runs short of cells, and its range is empty when it would be repeated.
TEST_P(Effects, ALaunchThatEmptiesItsOwnRangeDoesAllOfIt) {
  Room room(device);
  const auto count = wait_device_copy(*device, std::vector<uint64_t>{static_cast<uint64_t>(n())});
  auto* const at = count->as<uint64_t>();
  const Launch launch =
      program().make_launch(activate_and_empty, range_on_device(at), room.block.topology(), at);
  EXPECT_EQ(why_not_repeatable(*launch.uses),
            "stores the memory of argument 2, where the count of its range may be");
  run(activate_and_empty, range_on_device(at), room.block.topology(), at);
  EXPECT_EQ(room.block.wait_num_active_cells(), static_cast<uint64_t>(n()));
}
TEST_P(Effects, LaunchesSayWhatTheyTouch) {
  Tree lists(device, {.name = "lists"});
  Node list = lists.root().dense({1}).dynamic(64, 64);
  Field<int> v = list.place<int>("v");
  Room room(device);
  const Launch appends = program().make_launch(append_and_grow, range(1), v, room.block.topology(), 4);
  EXPECT_EQ(text_of(*appends.uses),
            "  reads, appends to, activates 'v' on lists.dense[1].dynamic[64] as Append, anywhere, in the "
            "order of the "
            "items\n"
            "  activates the cells of room.pointer[8192] as Grow, anywhere, in the order of the items\n");
  EXPECT_TRUE(appends.is_ordered());
  const Launch counts = program().make_launch(count_and_grow, range(1), room.block.topology(), 4,
                                              static_cast<uint32_t*>(nullptr));
  EXPECT_EQ(text_of(*counts.uses),
            "  activates the cells of room.pointer[8192] as Grow, anywhere, in the order of the items\n"
            "  reads, changes the memory of argument 3\n");
  EXPECT_EQ(why_not_repeatable(*counts.uses), "changes the memory of argument 3");
  const Launch activates = program().make_launch(activate_all, range(1), room.block.topology(), 4);
  EXPECT_EQ(why_not_repeatable(*activates.uses), "");
  const Launch sets = program().make_launch(set_numbers, range(1), room.x, 4);
  EXPECT_EQ(why_not_repeatable(*sets.uses), "") << text_of(*sets.uses);
}

// Where memory is at its end, lists keep no chunks for a launch that did not run.
TEST_P(Effects, AfterRunningOutOfMemoryAppendsFindWhatIsLeft) {
  Tree tree(device, {.name = "small", .max_bytes = 256 << 10});
  Node lists = tree.root().dense({64}).dynamic(1 << 20, 1024);  // 4 KiB a chunk, 62 of them
  Field<int> v = lists.place<int>("v");
  run(append_to_one_each, range(8), v, 64);
  const auto done = [&] {
    Launch launch = program().make_launch(append_to_one_each, range(100 << 10), v, 16);
    return device->default_stream().launch(std::move(launch));
  }();
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
  device->default_stream().clear_error();
  uint64_t chunks = 0;
  for (int k = 0; k < 64; ++k) chunks += (lists.wait_length({k, 0, 0}) + 1023) / 1024;
  EXPECT_EQ(lists.wait_usage().active_cells, chunks) << "chunks that hold nothing";
  wait(lists.deactivate_all());
  run(append_to_one_each, range(600), v, 60);
  EXPECT_EQ(wait_read_list(v, 59).size(), 10u);
}
// The author's own headers may lie beside the library's.
TEST_P(Effects, WhatAnAuthorsHeaderStoresIsTheAuthors) {
  Room room(device);
  int n = 0;
  run(count_elsewhere_and_grow, range(1), room.block.topology(), inout(n));
  EXPECT_EQ(n, 1);
}
// A limit below the size of one cell is kept.
TEST_P(Effects, NoCellIsLargerThanTheLimit) {
  Tree tree(device, {.name = "tiny", .max_bytes = 100});
  Node block = tree.root().pointer({64}), leaf = block.dense({16384});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords{5};
  const auto written = launch_and_wait(program(), write_at1, range(1), x, coords, 7);
  const auto expect_refused = [&](const AsyncValueRef<Chain>& done) {
    ASSERT_TRUE(done.is_error());
    EXPECT_EQ(done.error().code(), ErrorCode::kOutOfMemory);
    const std::string message = done.error().what();
    EXPECT_NE(message.find("tiny.pointer[64] is full: "), std::string::npos) << message;
    EXPECT_NE(message.find("0 cells of 65"), std::string::npos) << message;
    device->default_stream().clear_error();
  };
  expect_refused(written);
  const auto activated = block.activate({{3}});
  wait(activated);
  expect_refused(activated);
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  EXPECT_EQ(read1(x, {5}), (std::vector<int>{0}));
}
// A run that makes room for the launch does not count what the launch will.
TEST_P(Effects, AnIndexOutsideOfAListIsMissedOnce) {
  const auto missed = [&] {
    uint64_t n = 0;
    device->wait_copy(&n, &device->context().missed_writes, sizeof n);
    return n;
  };
  Tree tree(device);
  Node lists = tree.root().dense({1}).dynamic(64, 64);
  Field<int> v = lists.place<int>("v");
  Room room(device);
  const uint64_t before = missed();
  int drawn = 0;
  const auto done = launch_and_wait(program(), set_outside_and_add, range(1), v, room.block.topology(),
                                    room.x, 64, inout(drawn));
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange);
  device->default_stream().clear_error();
  EXPECT_EQ(missed(), before + 1);
}
// Seen: 62 chunks of a list that has no elements.
TEST_P(Effects, AfterAWriteByIndexThatFoundNoMemoryListsKeepNoChunks) {
  Tree tree(device, {.name = "small", .max_bytes = 256 << 10});
  Node lists = tree.root().dense({64}).dynamic(1 << 20, 1024);  // 4 KiB a chunk, 62 of them
  Field<int> v = lists.place<int>("v");
  run(append_to_one_each, range(1), v, 1);
  for (const int list : {0, 5}) {
    std::vector<int> index{100 << 10}, value{1};
    EXPECT_EQ(error_code_of(launch_and_wait(program(), set_elements, range(1), v, list, index, value)),
              ErrorCode::kOutOfMemory);
    device->default_stream().clear_error();
    EXPECT_EQ(lists.wait_length({list, 0, 0}), list == 0 ? 1u : 0u);
    EXPECT_EQ(lists.wait_usage().active_cells, 1u) << "chunks that hold nothing";
  }
  run(append_to_one_each, range(60), v, 60);
  EXPECT_EQ(lists.wait_usage().active_cells, 60u);
}
// Library functions store by pointer, too.
TEST_P(Effects, AFunctionThatIsGivenAnAddressStores) {
  const Launch launch = program().make_launch(split_and_grow, range(1), Room(device).block.topology(),
                                              static_cast<double*>(nullptr), static_cast<double*>(nullptr));
  EXPECT_NE(why_not_repeatable(*launch.uses), "") << text_of(*launch.uses);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Effects, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
