// executor/work_queue.h under threads; meant for ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/async_value.h"
#include "executor/work_queue.h"
#include "tests/core/on_threads.h"

namespace coppice::executor {
namespace {

using Shutdown = WorkQueue::Shutdown;

// Callables that say what became of each of them.
struct Fates {
  explicit Fates(int n) : runs(n), destructions(n) {}
  std::vector<std::atomic<int>> runs, destructions;

  struct Token {
    Token(Fates* fates, int number) : fates(fates), number(number) {}
    Token(Token&& other) noexcept : fates(std::exchange(other.fates, nullptr)), number(other.number) {}
    ~Token() {
      if (fates != nullptr) ++fates->destructions[number];
    }
    void operator()() { ++fates->runs[number]; }
    Fates* fates;
    int number;
  };
  Token token(int number) { return {this, number}; }
  int total_runs() const {
    int total = 0;
    for (const auto& runs : this->runs) total += runs;
    return total;
  }
};

TEST(WorkQueueStress, WhatManyThreadsAddRunsOnceEach) {
  constexpr int kAdders = 4, kEach = 2000;
  for (const int threads : {1, 2, 4}) {
    auto queue = WorkQueue::create({.threads = threads, .blocking_threads = 3});
    Fates fates(kAdders * kEach);
    on_threads(kAdders, [&](int t) {
      for (int i = 0; i < kEach; ++i) {
        const int number = t * kEach + i;
        if (i % 16 == 0) {
          ASSERT_TRUE(queue->add_blocking(fates.token(number)));
        } else if (i % 16 == 1) {
          ASSERT_TRUE(queue->add_at(WorkQueue::Clock::now(), fates.token(number)));
        } else {
          ASSERT_TRUE(queue->add(i % 5, i % 7, fates.token(number)));
        }
        if (i % 500 == 0) queue->wait_idle();
      }
    });
    while (fates.total_runs() < kAdders * kEach) std::this_thread::yield();
    queue->shutdown(Shutdown::kDrain);
    for (int i = 0; i < kAdders * kEach; ++i) {
      ASSERT_EQ(fates.runs[i], 1) << i;
      ASSERT_EQ(fates.destructions[i], 1) << i;
    }
  }
}

TEST(WorkQueueStress, BlockingTasksAreNeverOnComputeThreads) {
  for (int repetition = 0; repetition < 300; ++repetition) {
    auto queue = WorkQueue::create({.threads = 2, .blocking_threads = 2});
    constexpr int kTasks = 8;
    std::vector<std::thread::id> computing(kTasks), blocking(kTasks);
    // Every blocking task waits for every compute task: on one thread, one of them would never begin.
    std::latch computed(kTasks);
    for (int i = 0; i < kTasks; ++i) {
      queue->add_blocking([&, i] {
        computed.wait();
        blocking[i] = std::this_thread::get_id();
      });
      queue->add(i, 0, [&, i] {
        computing[i] = std::this_thread::get_id();
        computed.count_down();
      });
    }
    queue->wait_idle();
    const std::set<std::thread::id> computers(computing.begin(), computing.end());
    for (const auto id : blocking) {
      ASSERT_NE(id, std::thread::id());
      ASSERT_FALSE(computers.contains(id));
    }
  }
}

TEST(WorkQueueStress, OtherThreadsAwaitWhatTasksSet) {
  auto queue = WorkQueue::create({.threads = 2});
  on_threads(3, [&](int t) {
    for (int i = 0; i < 300; ++i) {
      auto first = make_unconstructed_async_value<int>();
      auto second = make_unconstructed_async_value<int>();
      queue->add(t, 0, [first, i] { first.emplace(i); });
      first.and_then([&queue, second, t](AsyncValuePtr<int> value) {
        queue->add_blocking([second, t, number = value.get()] { second.emplace(number + t); });
      });
      wait(second);
      ASSERT_EQ(second.get(), i + t);
    }
  });
}

// Eight threads wait for a task of theirs and drop the queue: the last reference goes on any of them, or on a
// thread of the queue's own, whose tasks hold references too.
TEST(WorkQueueStress, AwaitingAndDestroyingRaceWithEightThreads) {
  constexpr int kThreads = 8;
  for (int repetition = 0; repetition < 60; ++repetition) {
    auto shared = WorkQueue::create({.threads = 2, .blocking_threads = 2});
    std::vector<IntrusivePtr<WorkQueue>> queues(kThreads, shared);
    shared.reset();
    std::latch all_ran(3 * kThreads);
    on_threads(kThreads, [&](int t) {
      IntrusivePtr<WorkQueue> queue = std::move(queues[t]);
      auto value = make_unconstructed_async_value<int>();
      queue->add(t, 0, [&all_ran, value, queue]() mutable {
        value.emplace(1);
        queue->add_blocking([&all_ran, queue] { all_ran.count_down(); });
        queue.reset();
        all_ran.count_down();
      });
      if (t % 2 == 0) wait(value);
      queue->add(t, 1, [&all_ran] { all_ran.count_down(); });
      if (t % 4 == 0) queue->wait_idle();
    });
    all_ran.wait();
  }
}

TEST(WorkQueueStress, TasksAddTasksAndAllOfThemAreDrained) {
  for (const int threads : {1, 3}) {
    constexpr int kDepth = 12;
    std::atomic<int> ran{0};
    auto queue = WorkQueue::create({.threads = threads, .blocking_threads = 2});
    std::function<void(int)> grow = [&](int depth) {
      ++ran;
      if (depth == kDepth) return;
      ASSERT_TRUE(queue->add(depth, depth, [&, depth] { grow(depth + 1); }));
      if (depth % 4 == 0) {
        ASSERT_TRUE(queue->add_blocking([&, depth] { grow(depth + 1); }));
      } else {
        ASSERT_TRUE(queue->add(1, 0, [&, depth] { grow(depth + 1); }));
      }
    };
    queue->add(0, 0, [&] { grow(0); });
    queue->shutdown(Shutdown::kDrain);
    EXPECT_EQ(ran, (2 << kDepth) - 1);
  }
}

// Everything that was accepted runs (drain) or is destroyed unrun (drop), once;
// everything refused is destroyed.
TEST(WorkQueueStress, ShutdownRacesWithThreadsThatAdd) {
  constexpr int kThreads = 3, kEach = 3000, kAll = kThreads * kEach;
  for (int repetition = 0; repetition < 40; ++repetition) {
    const bool drains = repetition % 2 == 0;
    Fates fates(kAll);
    std::vector<std::atomic<int>> accepted(kAll);
    {
      auto queue = WorkQueue::create({.threads = 2, .blocking_threads = 2});
      std::atomic<int> added{0};
      std::thread closer([&] {
        while (added < 100 * repetition) std::this_thread::yield();
        queue->shutdown(drains ? Shutdown::kDrain : Shutdown::kDrop);
      });
      on_threads(kThreads, [&](int t) {
        for (int i = t * kEach; i < (t + 1) * kEach; ++i) {
          accepted[i] = i % 8 == 0 ? queue->add_blocking(fates.token(i))
                        : i % 8 == 1
                            ? static_cast<bool>(queue->add_at(WorkQueue::Clock::now(), fates.token(i))) + 2
                            : queue->add(i % 3, i % 11, fates.token(i));
          ++added;
        }
      });
      closer.join();
    }
    for (int i = 0; i < kAll; ++i) {
      ASSERT_EQ(fates.destructions[i], 1) << i;
      const bool is_timer = accepted[i] >= 2;
      const int most = accepted[i] % 2;
      ASSERT_LE(fates.runs[i], most) << i;
      if (drains && !is_timer) {
        ASSERT_EQ(fates.runs[i], most) << i;
      }
    }
  }
}

}  // namespace
}  // namespace coppice::executor
