// core/block_pool.h under threads: blocks travel between threads, which come and go.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "core/block_pool.h"

namespace coppice {
namespace {

struct Parcel {
  uint64_t* memory;
  size_t words;
  uint64_t stamp;
};

Parcel pack(size_t words, uint64_t stamp) {
  auto* const memory = static_cast<uint64_t*>(allocate_block(words * 8));
  for (size_t i = 0; i < words; ++i) memory[i] = stamp + i;
  return {memory, words, stamp};
}

// Returns whether nobody else has written to it since.
bool unpack(const Parcel& parcel) {
  bool is_intact = true;
  for (size_t i = 0; i < parcel.words; ++i) is_intact &= parcel.memory[i] == parcel.stamp + i;
  free_block(parcel.memory, parcel.words * 8);
  return is_intact;
}

struct Mailbox {
  std::mutex mutex;
  std::vector<Parcel> parcels;

  void put(std::vector<Parcel>& sent) {
    const std::lock_guard lock(mutex);
    parcels.insert(parcels.end(), sent.begin(), sent.end());
    sent.clear();
  }
  std::vector<Parcel> take() {
    const std::lock_guard lock(mutex);
    return std::exchange(parcels, {});
  }
};

// Each thread allocates for its neighbour and frees what it got from the other one; four generations of
// threads. Most blocks are of the largest class, whose batches are the shortest. Seen to fail
// with the store's push() and pop() without their lock, and with a block left on the list
// that a batch was handed over from.
TEST(BlockPoolStress, BlocksTravelBetweenThreadsUnharmed) {
  constexpr int kThreads = 6, kGenerations = 4, kLetters = 400, kParcels = 64;
  const int64_t live_before = live_blocks();
  Mailbox boxes[kThreads];
  std::atomic<int> broken{0}, received{0};
  const auto empty = [&](Mailbox& box) {
    for (const Parcel& parcel : box.take()) {
      received.fetch_add(1, std::memory_order_relaxed);
      if (!unpack(parcel)) broken.fetch_add(1, std::memory_order_relaxed);
    }
  };
  for (int generation = 0; generation < kGenerations; ++generation) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 random(generation * kThreads + t);
        std::vector<Parcel> sent;
        for (int letter = 0; letter < kLetters; ++letter) {
          for (int i = 0; i < kParcels; ++i)
            sent.push_back(pack(random() % 4 == 0 ? 1 + random() % 64 : 128, random()));
          boxes[(t + 1) % kThreads].put(sent);
          empty(boxes[t]);
        }
      });
    for (auto& thread : threads) thread.join();
  }
  for (Mailbox& box : boxes) empty(box);
  EXPECT_EQ(broken.load(), 0);
  EXPECT_EQ(received.load(), kThreads * kGenerations * kLetters * kParcels);
  EXPECT_EQ(live_blocks(), live_before);
  EXPECT_LE(shared_free_block_bytes(),
            detail::kBlockClasses * detail::kMaxSharedBatches * detail::kBlockBatchBytes);
}

}  // namespace
}  // namespace coppice
