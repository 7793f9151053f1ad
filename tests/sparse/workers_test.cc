// Threads of the cpu device that hold cells for themselves, and that remember where they wrote last.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"
#include "workers.kernels.h"

namespace coppice {
namespace {

using device::AllocatorState;
using device::CellBatch;
using device::TreeState;

// The allocator's books, when no launch runs: every cell that was handed out is live
// or in the free list, and once.
void check_books(Tree& tree, uint64_t live) {
  const TreeState& now = *tree.storage().memory().state();
  const AllocatorState& a = now.allocators[0];
  std::set<uint32_t> cells(a.free_list + a.free_used, a.free_list + a.free_size);
  ASSERT_EQ(cells.size(), a.free_size - a.free_used) << "a cell is free twice";
  EXPECT_EQ(now.holds_cells, 0u);
  for (uint64_t w = 0; w < now.num_workers; ++w) EXPECT_EQ(now.workers[w].batch[0], 0u);
  for (uint32_t cell = 1; cell < handed_out(a); ++cell) {
    const auto* header = reinterpret_cast<const device::CellHeader*>(a.cells + cell * a.cell_bytes);
    if (header->state != device::CellState::kLive) continue;
    EXPECT_TRUE(cells.insert(cell).second) << "live and free";
  }
  EXPECT_EQ(cells.size(), handed_out(a) - 1u) << "cells were lost";
  EXPECT_EQ(handed_out(a) - 1 - (a.free_size - a.free_used), live);
}

struct Blocks {
  explicit Blocks(const IntrusivePtr<Device>& device, uint64_t max_bytes = 0)
      : device(device), tree(device, {.max_bytes = max_bytes}), program(device) {
    block = tree.root().pointer({1 << 14});
    x = block->dense({16}).place<int>("x");
  }
  AsyncValueRef<Chain> activate(int n, int every) {
    return program.launch(activate_some, range(int64_t{n} * every), block->topology(), every);
  }
  IntrusivePtr<Device> device;
  Tree tree;
  Program program;
  std::optional<Node> block;
  Field<int> x;
};

TEST(Workers, WhatTheyHoldAfterALaunchIsFreeAgain) {
  for (const int threads : {1, 2, 4}) {
    Blocks b(Device::cpu(threads));
    for (int round = 0; round < 40; ++round) {
      const int n = 1 + round * 7919 % 3000;
      finish(b.activate(n, 64));
      check_books(b.tree, static_cast<uint64_t>(n));
      finish(b.activate(n + 100, 64));
      check_books(b.tree, static_cast<uint64_t>(n) + 100);
      EXPECT_EQ(b.block->wait_usage().active_cells, static_cast<uint64_t>(n) + 100);
      finish(b.block->deactivate_all());
      check_books(b.tree, 0);
    }
    // A batch has at most twice what was used of the worker's cells, and one has 64 at most.
    EXPECT_LE(handed_out(b.tree.storage().memory().state()->allocators[0]),
              3100u + 64 * static_cast<uint32_t>(threads));
  }
}

// Books that two workers could have left: numbers 1 to 9 and 20 to 29 are held, all up to 39 were handed out.
TEST(Workers, HolesBetweenTheirBatchesJoinTheFreeList) {
  Blocks b(Device::cpu(4));
  finish(b.activate(39, 1));  // one after another, by one thread
  TreeState& now = *b.tree.storage().memory().state();
  AllocatorState& a = now.allocators[0];
  ASSERT_EQ(a.num_cells, 40u);
  finish(b.block->deactivate_all());
  ASSERT_EQ(a.free_size, 39u);
  // Nobody uses two entries of the free list's first eleven, and three behind those.
  const std::set<uint32_t> held{a.free_list[4], a.free_list[5], a.free_list[8], a.free_list[9],
                                a.free_list[10]};
  a.free_used = 11;
  now.workers[3].batch[0] = pack(CellBatch{4, 2, 1, true, false});
  now.workers[0].batch[0] = pack(CellBatch{8, 3, 2, true, false});
  now.workers[1].batch[0] = pack(CellBatch{40, 5, 3, false, false});
  now.workers[2].batch[0] = pack(CellBatch{47, 3, 3, false, false});
  a.num_cells = 50, now.holds_cells = 1;
  finish(b.block->deactivate_all());
  // Nobody uses 45 and 46, nor six entries of the free list: they were another launch's.
  EXPECT_EQ(now.holds_cells, 0u);
  EXPECT_EQ(a.num_cells, 47u);
  const std::set<uint32_t> free(a.free_list + a.free_used, a.free_list + a.free_size);
  EXPECT_EQ(free.size(), 28u + 5u + 5u);
  for (const uint32_t cell : held) EXPECT_EQ(free.count(cell), 1u) << cell;
  for (uint32_t cell = 40; cell < 45; ++cell) EXPECT_EQ(free.count(cell), 1u) << cell;
}

// Seen to fail without the look at the others' words.
TEST(Workers, TheLastCellIsFoundInAnothersBatch) {
  for (const bool is_recycled : {false, true}) {
    Blocks b(Device::cpu(4), 64 << 10);
    finish(b.activate(1, 1));
    TreeState& now = *b.tree.storage().memory().state();
    AllocatorState& a = now.allocators[0];
    const auto most = static_cast<int>(a.capacity) - 1;
    if (is_recycled) finish(b.activate(most, 1)), finish(b.block->deactivate_all());
    // As if another thread of the launch had taken the last three, and was busy elsewhere.
    uint32_t& counter = is_recycled ? a.free_used : a.num_cells;
    const uint32_t end = is_recycled ? a.free_size : a.capacity;
    const uint32_t first = counter;
    now.workers[2].batch[0] = pack(CellBatch{first, 3, 2, is_recycled, false});
    counter += 3, now.holds_cells = 1;
    ASSERT_LT(counter, end);
    finish(b.activate(most, 1));
    EXPECT_EQ(b.block->wait_usage().active_cells, static_cast<uint64_t>(most));
    check_books(b.tree, static_cast<uint64_t>(most));
    EXPECT_THROW(finish(b.activate(most + 1, 1)), Error);
    b.device->default_stream().clear_error();
    check_books(b.tree, static_cast<uint64_t>(most));
  }
}

// A worker's batches grow with what was handed out: from the first cells on it has
// one more than it uses at most.
TEST(Workers, TakeAPartOfWhatThereIs) {
  Blocks b(Device::cpu(1));
  finish(b.activate(1, 1));
  const auto batches = [&](int n) {
    const TreeState& now = *b.tree.storage().memory().state();
    const uint64_t before = now.workers[0].shared_writes;
    finish(b.activate(n, 1));
    return now.workers[0].shared_writes - before;
  };
  EXPECT_EQ(batches(60), 59u);
  EXPECT_LT(batches(8000), 1000u);
}

TEST(Workers, TakeFreshCellsOnlyWhereNobodyHoldsAFreeOne) {
  Blocks b(Device::cpu(4));
  finish(b.activate(10, 1));
  finish(b.block->deactivate_all());
  TreeState& now = *b.tree.storage().memory().state();
  AllocatorState& a = now.allocators[0];
  ASSERT_EQ(a.free_size, 10u);
  // As if another thread of the launch had taken all of the free list, and three cells of it were left.
  a.free_used = 10, now.holds_cells = 1;
  now.workers[2].batch[0] = pack(CellBatch{7, 3, 2, true, false});
  finish(b.activate(3, 1));
  EXPECT_EQ(handed_out(a), 11u);
  finish(b.activate(4, 1));
  EXPECT_EQ(handed_out(a), 12u);
}

TEST(Workers, ABatchThatIsBeingTakenIsWaitedFor) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "its thread stands for a worker, whose writes the launch's end would order before what comes then";
#endif
  Blocks b(Device::cpu(4), 64 << 10);
  finish(b.activate(1, 1));
  TreeState& now = *b.tree.storage().memory().state();
  AllocatorState& a = now.allocators[0];
  const auto most = static_cast<int>(a.capacity) - 1;
  const CellBatch batch{a.num_cells, 3, 2, false, false};
  uint64_t& word = now.workers[2].batch[0];
  word = pack(CellBatch{0, 0, 2, false, true});
  a.num_cells += 3, now.holds_cells = 1;
  std::thread other([&] {  // it has its cells only when the others are used up
    while (__atomic_load_n(&a.num_cells, __ATOMIC_ACQUIRE) < a.capacity) std::this_thread::yield();
    for (int turn = 0; turn < 1000; ++turn) std::this_thread::yield();
    __atomic_store_n(&word, pack(batch), __ATOMIC_RELEASE);
  });
  wait(b.activate(most, 1));
  other.join();
  b.device->default_stream().clear_error();
  EXPECT_EQ(b.block->wait_usage().active_cells, static_cast<uint64_t>(most));
  check_books(b.tree, static_cast<uint64_t>(most));
}

TEST(Workers, AFullAllocatorIsUsedUpByThreadsTogether) {
  Blocks b(Device::cpu(4), 32 << 10);
  finish(b.activate(1, 1));
  const auto most = static_cast<int>(b.tree.storage().memory().state()->allocators[0].capacity) - 1;
  for (int round = 0; round < 100; ++round) {
    finish(b.activate(most, 256));
    check_books(b.tree, static_cast<uint64_t>(most));
    finish(b.block->deactivate_all());
    check_books(b.tree, 0);
  }
}

// Seen to fail where a thread's memory of its last walk is not compared with what the slots hold.
TEST(Workers, NothingIsWrittenToACellThatWasDeactivatedBefore) {
  for (const bool from_above : {false, true}) {
    const auto device = Device::cpu(2);
    Program program(device);
    int met = 0;
    for (int round = 0; round < 200 && met < 3; ++round) {
      Tree tree(device);
      Node outer = tree.root().pointer({4}), inner = outer.pointer({4}), leaf = inner.dense({8});
      const Field<int> x = leaf.place<int>("x");
      const Node& above = from_above ? outer : inner;
      finish(program.launch(write_again, range(3), x, above.topology()));
      EXPECT_EQ(wait_read(x, {0}, {2}), (std::vector<int>{0, 7}));
      EXPECT_EQ(inner.wait_usage().active_cells, 1u);
      constexpr int kItems = 1 << 14;
      uint32_t stage = 0;
      run_on(program, write_to_what_goes, range(kItems), x, above.topology(), kItems, inout(stage));
      if (stage != 3) continue;  // one thread had both items
      ++met;
      EXPECT_EQ(wait_read(x, {0}, {2}), (std::vector<int>{0, 7}));
      EXPECT_EQ(inner.wait_usage().active_cells, 1u);
    }
    if (met == 0) GTEST_SKIP() << "no two threads ran at once";
  }
}

}  // namespace
}  // namespace coppice
