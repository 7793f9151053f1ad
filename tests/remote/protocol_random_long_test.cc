// A million random schedules of users, faults, crashes and shutdowns, on all cores. A run is replayed by
// its seed.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/remote/random_world.h"

namespace coppice::executor::remote {
namespace {

constexpr uint64_t kSeeds = 1'000'000;

TEST(ProtocolRandom, MillionSeedsKeepWhatIsUsedAndFreeWhatIsNot) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  std::string problem;
  const auto work = [&] {
    for (uint64_t seed = next++; seed < kSeeds; seed = next++) {
      const std::string found = RandomWorld::try_seed(seed);
      if (found.empty()) continue;
      const std::lock_guard lock(mutex);
      problem = "seed " + std::to_string(seed) + ": " + found;
      next = kSeeds;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace coppice::executor::remote
