// Devices that are made, used and dropped in random orders, and programs that end meanwhile
// (lifetimes_stress_test.cc and, with more runs, lifetimes_long_test.cc).
#pragma once
#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/core/ending_runs.h"
#include "tests/sparse/kernel_store_util.h"
#include "tests/sparse/lifetimes.h"

namespace coppice {

// With an empty cache on disk.
class Lifetimes : public KernelStoreFolder {
 protected:
  Lifetimes() : cache_("COPPICE_CACHE_DIR", folder.string()) {}

  // On each of several threads: worlds that are used and let go, by this thread, another, or a continuation.
  void make_and_drop(int threads, int rounds, uint32_t seed) {
    const int before = Device::count();
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([rounds, seed = seed + static_cast<uint32_t>(t)] {
        World::Random random(seed);
        for (int round = 0; round < rounds; ++round) make_and_drop_one(random);
      });
    }
    all.clear();
    // A device that its own thread drops is gone some time later.
    while (Device::count() > before) std::this_thread::yield();
  }

  // Programs that end in random ways (ending_program.cc).
  void end_programs(int runs, uint32_t seed) {
    for (int run = 0; run < runs; ++run) {
      const auto own = folder / std::to_string(run);
      run_endings("ending_program", 1, seed + static_cast<uint32_t>(run),
                  "COPPICE_CACHE_DIR=" + own.string());
      if (HasFatalFailure()) return;
      std::filesystem::remove_all(own);
    }
  }

 private:
  static void make_and_drop_one(World::Random& random) {
    auto world = std::make_shared<World>(random);
    for (uint32_t n = random() % 6; n > 0; --n) world->work(random);
    auto let_go = [seed = random()](const std::shared_ptr<World>& last) {
      World::Random order(seed);
      last->let_go(order);
    };
    const uint32_t how = random() % 4;
    if (how == 0) return let_go(world);
    if (how == 1)
      return std::thread([world = std::move(world), let_go]() mutable { let_go(world); }).detach();
    const auto last = world->last();
    const auto code = world->code();
    auto drop = [world = std::move(world), let_go]() mutable { let_go(world); };
    if (how == 2)
      last.and_then(std::move(drop));
    else
      code.and_then(std::move(drop));
  }

  const Environment cache_;
};

}  // namespace coppice
