// gpu/simt/machine.h: what threads of the emulated GPU are promised, what they are not, and how misuse is named.
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "gpu/simt/machine.h"
#include "gpu/simt/symbols.h"

namespace coppice::simt {
namespace {

// A kernel's arguments: what a test keeps, by address.
template <class T>
LaunchBlock block_with(T& data) {
  LaunchBlock block{};
  block.trees[0] = &data;
  return block;
}
template <class T>
T& data_of(const LaunchBlock* block) {
  return *static_cast<T*>(block->trees[0]);
}

void add_to_items(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  auto& items = data_of<std::vector<int>>(block);
  for (uint64_t i = begin + coppice_simt_lane(); i < end; i += coppice_simt_lane_count()) {
    coppice_simt_atomic(&items[i], 4);
    ++items[i];
  }
}

TEST(SimtMachine, GivesEveryItemOfARangeToOneThread) {
  for (const uint64_t count : {0, 1, 31, 64, 65, 1000, 100'000}) {
    std::vector<int> items(count);
    Machine machine(Options{});
    machine.run("items", block_with(items), add_to_items, count, 0);
    EXPECT_EQ(items, std::vector<int>(count, 1));
  }
}

struct Counter {
  uint32_t lock = 0;
  uint32_t value = 0;
};

void count_under_lock(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  auto& counter = data_of<Counter>(block);
  for (uint64_t i = begin + coppice_simt_lane(); i < end; i += coppice_simt_lane_count()) {
    while (coppice_simt_compare_exchange_u32(&counter.lock, 0, 1) != 0) coppice_simt_pause();
    uint32_t value;
    coppice_simt_load(&counter.value, &value, 4);
    ++value;
    coppice_simt_store(&counter.value, &value, 4);
    coppice_simt_store_release_u32(&counter.lock, 0);
  }
}

TEST(SimtMachine, CountsExactlyUnderALock) {
  Machine machine(Options{.seed = 5});
  for (int launch = 0; launch < 20; ++launch) {
    alignas(64) Counter counter;
    machine.run("lock", block_with(counter), count_under_lock, 300, 0);
    EXPECT_EQ(counter.value, 300u) << "launch " << launch;
  }
}

}  // namespace
}  // namespace coppice::simt
