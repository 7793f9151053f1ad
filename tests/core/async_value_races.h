// Races of and_then() against emplace() and set_error(), as many as asked; for a stress test and a long one.
#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "core/async_value.h"

namespace coppice {

// On `threads` threads, one of which completes values that the others register continuations
// with, each walking along the same row of values. Every registration is a race; each
// continuation must run once and see the value.
inline void race_continuations_against_completion(int threads, int64_t races) {
  constexpr int kValues = 2048;
  const int followers = threads - 1;
  const int64_t rounds = (races + kValues * followers - 1) / (kValues * followers);
  const int64_t live_before = live_async_values();
  std::vector<AsyncValueRef<int64_t>> values(kValues);
  std::vector<std::atomic<int>> runs(kValues);
  std::atomic<int64_t> wrong{0}, deferred{0};
  int64_t round = 0;
  const auto make_values = [&]() noexcept {
    for (int i = 0; i < kValues; ++i) {
      // The round before: whoever registered has been called.
      if (round > 0 && runs[i].exchange(0, std::memory_order_relaxed) != followers) ++wrong;
      values[i] = make_unconstructed_async_value<int64_t>();
    }
    ++round;
  };
  std::barrier start(threads, make_values);
  const auto walk = [&](int t) {
    std::minstd_rand random(t + 1);
    int64_t my_deferred = 0;
    for (int64_t r = 0; r < rounds; ++r) {
      start.arrive_and_wait();
      const int64_t expected = round;
      for (int i = 0; i < kValues; ++i) {
        if (random() % 512 == 0) std::this_thread::yield();
        if (t == 0) {
          if (i % 8 == 7) {
            values[i].set_error(Error(ErrorCode::kNumeric, "every eighth"));
          } else {
            values[i].emplace(expected);
          }
          continue;
        }
        values[i].and_then(
            [&wrong, &runs, expected, i, owned = std::make_unique<int>(i)](AsyncValuePtr<int64_t> value) {
              const bool is_right = value.is_error() ? i % 8 == 7 : value.get() == expected;
              if (!is_right || *owned != i) wrong.fetch_add(1, std::memory_order_relaxed);
              runs[i].fetch_add(1, std::memory_order_relaxed);
            });
        if (!values[i].is_available()) ++my_deferred;
      }
    }
    start.arrive_and_wait();
    deferred.fetch_add(my_deferred, std::memory_order_relaxed);
  };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back(walk, t);
  for (auto& thread : all) thread.join();
  EXPECT_EQ(wrong.load(), 0) << threads << " threads";
  EXPECT_GT(deferred.load(), 0) << "no continuation was ever registered before its value came";
  values.clear();
  EXPECT_EQ(live_async_values(), live_before);
}

// The same number of races on 2, 3, 4, 8 and 16 threads.
inline void race_on_2_to_16_threads(int64_t races) {
  for (const int threads : {2, 3, 4, 8, 16}) race_continuations_against_completion(threads, races / 5);
}

}  // namespace coppice
