// COPPICE_DEBUG=checks: a kernel that touches more than its launch's uses say is an error in one line that
// names the kernel, what it touches and where. And what launches say of themselves.
#include <algorithm>
#include <optional>

#include "gpu/buffer_ranges.h"
#include "sparse/uses.h"
#include "tests/sparse/conformance_fixture.h"
#include "uses.kernels.h"

namespace coppice {
namespace {

class Uses : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped()) return;
    tree.emplace(device, TreeOptions{.name = "grid"});
    block = tree->root().pointer({16});
    leaf = block->dense({8});
    x = leaf->place<int>("x"), y = leaf->place<int>("y");
    lists = tree->root().dense({2}).dynamic(64, 8);
    v = lists->place<int>("v");
    wait(leaf->activate({{8}}));
  }
  template <class... Arguments>
  std::string check(Arguments&&... arguments) {
    Program checked(device, {.checks = true});
    const auto done = launch_and_wait(checked, std::forward<Arguments>(arguments)...);
    device->default_stream().clear_error();
    EXPECT_EQ(status_of(*device), 0u) << "a status was left to the next launch";
    return done.is_error() ? done.error().what() : "";
  }
  std::vector<int> values() { return read1(x, {8, 9, 15}); }
  // Between two buffers, in ints.
  static int64_t distance(const Buffer& from, const Buffer& to) {
    return (reinterpret_cast<intptr_t>(to.data()) - reinterpret_cast<intptr_t>(from.data())) /
           static_cast<intptr_t>(sizeof(int));
  }

  std::optional<Tree> tree;
  std::optional<Node> block, leaf, lists;
  Field<int> x, y, v;
};

const std::string kX = "field 'x' on grid.pointer[16].dense[8]: ";

TEST_P(Uses, AHandleDoesWhatItsUseSays) {
  EXPECT_EQ(check(write_by_read, over(*leaf), x),
            "kernel uses.write_by_read: " + kX + "it stores it; its uses say: reads");
  EXPECT_EQ(check(update_by_read, over(*leaf), x),
            "kernel uses.update_by_read: " + kX + "it changes it; its uses say: reads");
  EXPECT_EQ(check(add_by_update, over(*leaf), x),
            "kernel uses.add_by_update: " + kX + "it adds to it; its uses say: reads, changes");
  EXPECT_EQ(values(), (std::vector<int>{0, 0, 0})) << "what was refused was done";
  int out = 3;
  EXPECT_EQ(check(read_by_grow, range(1), x, inout(out)),
            "kernel uses.read_by_grow: " + kX + "it reads it; its uses say: nothing");
  EXPECT_EQ(out, 0);
}

TEST_P(Uses, ChangesOfTheTopologyAreSaid) {
  EXPECT_EQ(check(activate_by_read, range(1), x),
            "kernel uses.activate_by_read: " + kX + "it activates it; its uses say: reads");
  EXPECT_EQ(check(append_by_read, range(1), v),
            "kernel uses.append_by_read: field 'v' on grid.dense[2].dynamic[64]: it appends to, "
            "activates it; its "
            "uses say: reads");
  // A list of effects that is not the kernel's own.
  const auto without = [](auto kernel, uint32_t effects) {
    kernel.effects &= ~effects;
    return kernel;
  };
  const std::string node = "grid.pointer[16]: it ";
  EXPECT_EQ(check(without(grow_and_shrink, kActivatesCells), range(1), block->topology(), 3, 1),
            "kernel uses.grow_and_shrink: " + node + "activates it; its uses say: deactivates");
  EXPECT_EQ(check(without(grow_and_shrink, kDeactivatesCells), range(1), block->topology(), 3, 1),
            "kernel uses.grow_and_shrink: " + node + "deactivates it; its uses say: activates");
  int out = 7;
  EXPECT_EQ(check(without(test_one, kTestsCells), range(1), block->topology(), 3, inout(out)),
            "kernel uses.test_one: " + node + "tests it; its uses say: nothing");
  EXPECT_EQ(out, 0);
  EXPECT_EQ(check(without(append_one, kActivatesCells), range(1), v, 1),
            "kernel uses.append_one: field 'v' on grid.dense[2].dynamic[64]: it appends to, activates "
            "it; its uses "
            "say: reads");
  EXPECT_EQ(lists->wait_length({1, 0, 0}), 0u);
  EXPECT_EQ(check(append_one, range(1), v, 1), "");
  EXPECT_EQ(check(test_one, range(1), block->topology(), 3, inout(out)), "");
  EXPECT_EQ(out, 1) << "what was activated before an error stays";
}

TEST_P(Uses, ChangesByOtherMeansAreSeenBehindTheLaunch) {
  int out = 0;
  EXPECT_EQ(
      check(activate_by_runtime, range(1), x, 20, inout(out)),
      "kernel uses.activate_by_runtime: it changed the topology of tree 'grid', which its uses do not say");
  EXPECT_EQ(block->wait_num_active_cells(), 2u) << "loops and counts know of it all the same";
}

TEST_P(Uses, AHandleReachesAsFarAsItsUseSays) {
  EXPECT_EQ(check(read_further, over(*leaf), x, y),
            "kernel uses.read_further: " + kX +
                "it reads it further away, or as another type; its uses say: reads");
  EXPECT_EQ(
      check(read_wider, over(*leaf), x, y),
      "kernel uses.read_wider: " + kX + "it reads it further away, or as another type; its uses say: reads");
  auto kernel = read_one;
  kernel.effects &= ~kReadsAnywhere;
  int out = 0;
  EXPECT_EQ(
      check(kernel, range(1), x, 8, inout(out)),
      "kernel uses.read_one: " + kX + "it reads it further away, or as another type; its uses say: reads");
  EXPECT_EQ(check(read_one, range(1), x, 8, inout(out)), "");
}

TEST_P(Uses, AHandleIsOneOfTheLaunchsArguments) {
  EXPECT_EQ(check(update_other, over(*leaf), x, y, 0), "");
  EXPECT_EQ(values(), (std::vector<int>{7, 7, 7}));
  EXPECT_EQ(check(update_other, over(*leaf), x, y, 1),
            "kernel uses.update_other: field 'y' on grid.pointer[16].dense[8]: it changes it; "
            "its uses "
            "say: reads");
  for (const int by : {2, 23, 100000, -1})
    EXPECT_EQ(check(update_other, over(*leaf), x, y, by),
              "kernel uses.update_other: it changes through a handle that is none of its "
              "arguments");
  EXPECT_EQ(values(), (std::vector<int>{7, 7, 7}));
  EXPECT_EQ(read1(y, {8, 9}), (std::vector<int>{0, 0}));
}

TEST_P(Uses, APointerStaysInItsBuffer) {
  const auto mine = device->reserve(64, 64), theirs = device->reserve(128, 128);
  const std::string start = "kernel uses.store_at: uses.kernels.cc:";
  EXPECT_EQ(check(store_at, range(16), mine->as<int>(), int64_t{0}), "");
  const std::string error = check(store_at, range(1), mine->as<int>(), distance(*mine, *theirs) + 3);
  EXPECT_EQ(error.substr(0, start.size()), start);
  EXPECT_NE(
      error.find(": a pointer stores 4 bytes of a buffer of 128 bytes, from byte 12 on, which its uses do "
                 "not say"),
      std::string::npos)
      << error;
  int out = 0;
  for (const int64_t at : {int64_t{16}, int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_NE(check(store_at, range(1), mine->as<int>(), at).find("a pointer stores 4 bytes of "),
              std::string::npos);
    EXPECT_NE(check(load_at, range(1), mine->as<int>(), at, inout(out)).find("a pointer reads 4 bytes of "),
              std::string::npos);
    EXPECT_EQ(out, 1) << "what is refused reads as zero";
    EXPECT_NE(check(change_at, range(1), mine->as<unsigned>(), at).find("a pointer changes 4 bytes of "),
              std::string::npos);
  }
  EXPECT_NE(check(copy_at, range(1), mine->as<char>(), theirs->as<char>(), int64_t{0}, int64_t{65})
                .find("a pointer stores 65 bytes of a buffer of 64 bytes, from byte 0 on"),
            std::string::npos);
  EXPECT_EQ(check(copy_at, range(1), mine->as<char>(), theirs->as<char>(), int64_t{0}, int64_t{64}), "");
  EXPECT_NE(check(change_const, range(1), mine->as<int>()).find("a pointer stores 4 bytes of a buffer"),
            std::string::npos);
  EXPECT_NE(check(store_const, range(1), mine->as<int>()).find("a pointer stores 4 bytes of a buffer"),
            std::string::npos);
  int left[32];
  device->wait_copy(left, theirs->data(), sizeof left);
  for (const int k : left) EXPECT_EQ(k, 0) << "what was refused was stored";
}

// Seen to fault in the run that made room for it.
TEST_P(Uses, APointerStaysInItsBufferWhereRoomIsMade) {
  const auto mine = device->reserve(64, 64);
  EXPECT_NE(check(append_where, range(4), v, mine->as<int>()).find("a pointer reads 4 bytes of "),
            std::string::npos);
  EXPECT_EQ(check(append_one, range(1), v, 1), "");
}

TEST_P(Uses, APointerIntoATreeIsThatOfAHandle) {
  wait(block->reserve(2000));  // cells stay where they are from then on
  uint64_t at[2];
  run(list_addresses1, over(*leaf), inout(at));
  const auto mine = device->reserve(64, 64);
  const int64_t to_x = (static_cast<int64_t>(at[1]) - reinterpret_cast<intptr_t>(mine->data())) / 4;
  const std::string error = check(store_near_read, range(1), x, mine->as<int>(), to_x);
  EXPECT_NE(
      error.find(": a pointer stores 4 bytes of 'x' on grid.pointer[16].dense[8], which its uses do not say"),
      std::string::npos)
      << error;
  EXPECT_NE(check(store_by_read, over(*leaf), x).find("a pointer stores 4 bytes of 'x' on grid"),
            std::string::npos);
  EXPECT_EQ(values(), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(check(read_by_pointer, over(*leaf), x, y, 7), "");
}

TEST_P(Uses, WhatIsSaidIsNoError) {
  Tree others(device, {.name = "others"});
  const auto a = device->reserve(64, 64), b = device->reserve(64, 64);
  int* rows_on_host[1] = {b->as<int>()};
  const auto rows = wait_device_copy(*device, rows_on_host, 1);
  EXPECT_EQ(check(use_struct, range(16), TwoBuffers{a->as<int>(), 3, b->as<int>()}), "");
  for (int n = 0; n < 8; ++n)
    EXPECT_EQ(check(use_chosen, range(1), a->as<int>(), rows->as<int* const>(), n), "") << n;
  EXPECT_EQ(check(use_update, over(*leaf), x, y), "");
  EXPECT_EQ(check(use_blocks, over(*leaf), x, 8), "");
  EXPECT_EQ(check(use_fast_memory, over(*leaf), a->as<int>()), "");
  int last = 0;
  device->wait_copy(&last, a->data(), sizeof last);
  EXPECT_EQ(last, 15);
  // Seen before: refused, where a pointer may lead to one thing or another.
  EXPECT_EQ(check(use_table_or_buffer, range(16), a->as<int>(), b->as<int>()), "");
  device->wait_copy(&last, b->as<int>() + 5, sizeof last);
  EXPECT_EQ(last, 20);
  EXPECT_EQ(check(use_fast_memory_or_field, over(*leaf), x, a->as<int>()), "");
  EXPECT_EQ(check(use_ends, range(16), a->as<int>() + 16, b->as<int>()), "");
  EXPECT_EQ(check(use_default_table, range(16), static_cast<const int*>(nullptr), b->as<int>()), "");
  EXPECT_EQ(check(use_default_table, range(16), a->as<int>(), b->as<int>()), "");
  EXPECT_EQ(check(use_larger, over(*leaf), x, a->as<int>()), "");
  EXPECT_GE(values()[0], 50);
  EXPECT_EQ(check(use_table_of_tables, range(16), 1, b->as<int>()), "");
  device->wait_copy(&last, b->as<int>() + 2, sizeof last);
  EXPECT_EQ(last, 30);
  if (GetParam() == "cpu") {  // memory of the host's
    std::vector<int> one(4), two(4);
    EXPECT_EQ(check(fill_either, range(4), one.data(), two.data(), 0), "");
    EXPECT_EQ(one, (std::vector<int>{1, 0, 1, 0}));
  }
  EXPECT_EQ(check(use_moving_pointer, range(2), a->as<int>(), b->as<int>(), 8), "");
  const Field<PointerValue> pointers = others.root().dense({1}).place<PointerValue>("pointers");
  EXPECT_EQ(check(set_pointer, range(1), pointers, a->as<int>()), "");
  int before = 0;
  device->wait_copy(&before, a->data(), sizeof before);
  EXPECT_EQ(check(use_pointer_values, over(detail::node_of(pointers.tree, pointers.id.node)), pointers), "");
  device->wait_copy(&last, a->data(), sizeof last);
  EXPECT_EQ(last, before + 2);
  // A buffer that grows once its launch is bound.
  const auto grows = device->reserve(1 << 20, 64);
  Program checked(device, {.checks = true});
  const BoundLaunch stores = checked.bind(store_at, range(4096), grows->as<int>(), int64_t{0});
  grows->grow(1 << 20);
  finish(stores.launch());
}

// As many buffers come and go as there are launches.
TEST_P(Uses, TablesOfMemoryAreNotKeptForEver) {
  Program checked(device, {.checks = true});
  const auto first = device->reserve(64, 64);
  const size_t before = BufferRanges::all().list().size();
  const auto launch = [&](const Buffer& buffer) {
    finish(checked.launch(store_at, range(16), buffer.as<int>(), int64_t{0}));
    return BufferRanges::all().list().size() - before;
  };
  EXPECT_EQ(launch(*first), 1u);
  EXPECT_EQ(launch(*first), 1u) << "the same launch has the same table";
  std::vector<IntrusivePtr<Buffer>> all;
  size_t tables = 0;
  for (int k = 0; k < 200; ++k) {
    all.push_back(device->reserve(64, 64));
    tables = std::max(tables, launch(*all.back()) - all.size());
  }
  EXPECT_GT(tables, 2u);
  EXPECT_LE(tables, 70u);
  // Seen before: each of two programs took the other's tables for buffers, and made new ones for ever.
  Program other(device, {.checks = true});
  size_t of_both = 0;
  for (int k = 0; k < 10; ++k) {
    launch(*first);
    finish(other.launch(store_at, range(16), first->as<int>(), int64_t{0}));
    if (k == 1) of_both = BufferRanges::all().list().size();
  }
  EXPECT_EQ(BufferRanges::all().list().size(), of_both);
}

TEST_P(Uses, LaunchesExplainThemselves) {
  EXPECT_EQ(program().explain(read_further, over(*leaf), x, y),
            "uses.read_further\n"
            "  reads 'x' on grid.pointer[16].dense[8] as Read, Star<1>\n"
            "  stores 'y' on grid.pointer[16].dense[8] as Write\n"
            "  reads the cells of grid.pointer[16].dense[8], to loop over them\n");
  EXPECT_EQ(program().explain(read_one, range(1), x, 8, static_cast<int*>(nullptr)),
            "uses.read_one\n"
            "  reads 'x' on grid.pointer[16].dense[8] as Read, anywhere\n"
            "  stores the memory of argument 3\n");
  EXPECT_EQ(text_of(*program().uses(test_one, range(1), block->topology(), 3, static_cast<int*>(nullptr))),
            "  tests the cells of grid.pointer[16] as Grow, anywhere, in the order of the items\n"
            "  stores the memory of argument 3\n");
  const BoundLaunch bound = program().bind(grow_and_shrink, range(1), block->topology(), 1, 2);
  EXPECT_EQ(text_of(*bound.uses()),
            "  activates, deactivates the cells of grid.pointer[16] as Grow, anywhere, in the order of the "
            "items\n");
  EXPECT_EQ(program().explain(store_const, range(1), static_cast<int*>(nullptr)),
            "uses.store_const\n"
            "  stores memory that no argument leads to\n");
  // A use that a launch would refuse is refused here, too.
  EXPECT_THROW(program().explain(update_other, over(*block), x, y, 0), Error);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Uses, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
