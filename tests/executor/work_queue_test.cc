// executor/work_queue.h: order, fairness, shutdown, timers. Order is made
// deterministic by parking the only thread.
#include "executor/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/async_value.h"
#include "core/trace.h"

namespace coppice::executor {
namespace {

using Shutdown = WorkQueue::Shutdown;

// Holds the only compute thread of a queue until open() is called.
class Gate {
 public:
  explicit Gate(WorkQueue& queue) {
    EXPECT_TRUE(queue.add(999, 0, [this] {
      entered_.count_down();
      opened_.wait();
    }));
    entered_.wait();
  }
  void open() { opened_.count_down(); }

 private:
  std::latch entered_{1}, opened_{1};
};

// Notes the tasks that ran, in order. It is only for queues with one compute thread, read after wait_idle()
// or shutdown().
struct Log {
  std::vector<std::string> ran;
  auto entry(std::string name) {
    return [this, name = std::move(name)] { ran.push_back(name); };
  }
};

TEST(WorkQueue, RunsATaskOnAThreadOfItsOwn) {
  auto queue = WorkQueue::create({.threads = 1});
  std::thread::id thread;
  bool is_worker = false;
  EXPECT_TRUE(queue->add(1, 0, [&] {
    thread = std::this_thread::get_id();
    is_worker = WorkQueue::is_worker_thread();
  }));
  queue->wait_idle();
  EXPECT_NE(thread, std::thread::id());
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_TRUE(is_worker);
  EXPECT_FALSE(WorkQueue::is_worker_thread());
}

TEST(WorkQueue, HasAsManyComputeThreadsAsAskedForAtOnce) {
  for (const int threads : {1, 2, 5, 9}) {
    auto queue = WorkQueue::create({.threads = threads});
    EXPECT_EQ(queue->threads(), threads);
    std::latch all_here(threads);
    for (int i = 0; i < threads; ++i) queue->add(1, 0, [&] { all_here.arrive_and_wait(); });
    queue->wait_idle();
  }
  EXPECT_GE(WorkQueue::create()->threads(), 1);
}

TEST(WorkQueue, ASmallQueueTakesNoThreadsFromALargeOne) {
  auto large = WorkQueue::create({.threads = 6});
  auto small = WorkQueue::create({.threads = 1});
  std::latch all_here(7);
  for (int i = 0; i < 6; ++i) large->add(1, 0, [&] { all_here.arrive_and_wait(); });
  small->add(1, 0, [&] { all_here.arrive_and_wait(); });
  large->wait_idle();
  small->wait_idle();
}

TEST(WorkQueue, RunsTheHighestPriorityFirstAndTheLatestAmongEquals) {
  auto queue = WorkQueue::create({.threads = 1});
  Log log;
  Gate gate(*queue);
  queue->add(1, 5, log.entry("5, first"));
  queue->add(1, 7, log.entry("7"));
  queue->add(1, 5, log.entry("5, second"));
  queue->add(1, 0, log.entry("0"));
  queue->add(1, 0xFFFFFFFFu, log.entry("most"));
  gate.open();
  queue->wait_idle();
  EXPECT_EQ(log.ran, (std::vector<std::string>{"most", "7", "5, second", "5, first", "0"}));
}

TEST(WorkQueue, TakesTurnsBetweenSourcesWhateverTheirPriorities) {
  auto queue = WorkQueue::create({.threads = 1});
  Log log;
  Gate gate(*queue);
  for (int i = 0; i < 3; ++i) queue->add(1, 9, log.entry("a" + std::to_string(i)));
  for (int i = 0; i < 2; ++i) queue->add(2, 0, log.entry("b" + std::to_string(i)));
  queue->add(3, 5, log.entry("c0"));
  gate.open();
  queue->wait_idle();
  EXPECT_EQ(log.ran, (std::vector<std::string>{"a2", "b1", "c0", "a1", "b0", "a0"}));
}

TEST(WorkQueue, ALongSourceDelaysAnothersTaskByOneTurn) {
  auto queue = WorkQueue::create({.threads = 1});
  int64_t ran = 0, ran_before = -1;
  Gate gate(*queue);
  for (int i = 0; i < 100'000; ++i) {
    // The last added is the first to run: it is then that the other source's task comes.
    queue->add(1, 0, [&, i] {
      ++ran;
      if (i == 99'999) queue->add(2, 0, [&] { ran_before = ran; });
    });
  }
  gate.open();
  queue->wait_idle();
  EXPECT_EQ(ran, 100'000);
  EXPECT_LE(ran_before, 2);
}

TEST(WorkQueue, ASourceThatAddsItsNextTaskEachTimeTakesTurnsToo) {
  auto queue = WorkQueue::create({.threads = 1});
  Log log;
  std::function<void(uint64_t, int)> step = [&](uint64_t source, int left) {
    log.ran.push_back(std::to_string(source));
    if (left > 1) queue->add(source, 0, [&, source, left] { step(source, left - 1); });
  };
  Gate gate(*queue);
  for (const uint64_t source : {1, 2, 3}) queue->add(source, 0, [&, source] { step(source, 3); });
  gate.open();
  queue->wait_idle();
  EXPECT_EQ(log.ran, (std::vector<std::string>{"1", "2", "3", "1", "2", "3", "1", "2", "3"}));
}

TEST(WorkQueue, BlockingTasksHaveThreadsOfTheirOwnUpToTheLimit) {
  auto queue = WorkQueue::create({.threads = 1, .blocking_threads = 3});
  Gate gate(*queue);  // they do not need the compute thread
  std::latch all_here(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> inside{0}, most_inside{0};
  const auto task = [&] {
    EXPECT_TRUE(WorkQueue::is_worker_thread());
    const int now = ++inside;
    for (int most = most_inside; now > most && !most_inside.compare_exchange_weak(most, now);) {
    }
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    --inside;
  };
  for (int i = 0; i < 3; ++i)
    queue->add_blocking([&] {
      all_here.arrive_and_wait();  // three at once, or never
      task();
    });
  for (int i = 0; i < 100; ++i) queue->add_blocking(task);
  gate.open();
  queue->wait_idle();
  EXPECT_EQ(threads.size(), 3u);
  EXPECT_LE(most_inside, 3);
}

TEST(WorkQueue, ReusesAnIdleBlockingThread) {
  auto queue = WorkQueue::create({.threads = 1});
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i) {
    queue->add_blocking([&] { threads.insert(std::this_thread::get_id()); });
    queue->wait_idle();
  }
  EXPECT_EQ(threads.size(), 1u);
}

TEST(WorkQueue, DrainsWhatIsQueuedAtShutdown) {
  auto queue = WorkQueue::create({.threads = 1});
  std::atomic<int> ran{0};
  Gate gate(*queue);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(queue->add(i % 3, 0, [&] { ++ran; }));
    EXPECT_TRUE(queue->add_blocking([&] { ++ran; }));
  }
  gate.open();
  queue->shutdown(Shutdown::kDrain);
  EXPECT_EQ(ran, 200);
}

TEST(WorkQueue, DrainingAcceptsWhatItsTasksAdd) {
  auto queue = WorkQueue::create({.threads = 2});
  std::atomic<int> ran{0};
  std::latch is_closing(1);
  std::atomic<bool> outside_refused{false};
  queue->add(1, 0, [&] {
    is_closing.wait();
    EXPECT_TRUE(queue->add(1, 0, [&] {
      ++ran;
      EXPECT_TRUE(queue->add_blocking([&] {
        ++ran;
        EXPECT_TRUE(queue->add(2, 0, [&] { ++ran; }));
        EXPECT_FALSE(queue->add_at(WorkQueue::Clock::now(), [&] { ADD_FAILURE(); }));
      }));
    }));
  });
  std::thread outside([&] {
    // Refused from the moment that shutdown() began.
    while (queue->add(3, 0, [] {})) std::this_thread::yield();
    outside_refused = !queue->add_blocking([] {});
    is_closing.count_down();
  });
  queue->shutdown(Shutdown::kDrain);
  outside.join();
  EXPECT_EQ(ran, 3);
  EXPECT_TRUE(outside_refused);
}

TEST(WorkQueue, DropDestroysWhatIsQueuedUnrunAndOutsideOfItsLock) {
  auto queue = WorkQueue::create({.threads = 1, .blocking_threads = 1});
  int destroyed = 0, ran = 0;
  struct Tracer {
    WorkQueue* queue;
    int *destroyed, *ran;
    Tracer(WorkQueue* queue, int* destroyed, int* ran) : queue(queue), destroyed(destroyed), ran(ran) {}
    Tracer(Tracer&& other) noexcept
        : queue(std::exchange(other.queue, nullptr)), destroyed(other.destroyed), ran(other.ran) {}
    ~Tracer() {
      if (queue == nullptr) return;
      ++*destroyed;
      EXPECT_FALSE(queue->add(1, 0, [] { ADD_FAILURE() << "run after the queue was shut down"; }));
    }
    void operator()() { ++*ran; }
  };
  Gate gate(*queue);
  std::latch blocked(1), unblock(1);
  queue->add_blocking([&] {
    blocked.count_down();
    unblock.wait();
    EXPECT_FALSE(queue->add_blocking([] { ADD_FAILURE() << "run after the queue was shut down"; }));
  });
  blocked.wait();
  const auto never = WorkQueue::Clock::time_point::max();
  for (int i = 0; i < 10; ++i) {
    queue->add(i % 3, i, Tracer(queue.get(), &destroyed, &ran));
    queue->add_blocking(Tracer(queue.get(), &destroyed, &ran));
    queue->add_at(never, Tracer(queue.get(), &destroyed, &ran));
  }
  std::thread opener([&] {
    while (queue->add_at(never, [] {})) std::this_thread::yield();  // until shutdown() has begun
    gate.open();
    unblock.count_down();
  });
  queue->shutdown(Shutdown::kDrop);
  opener.join();
  EXPECT_EQ(destroyed, 30);
  EXPECT_EQ(ran, 0);
  EXPECT_FALSE(queue->add(1, 0, Tracer(queue.get(), &destroyed, &ran)));
  EXPECT_EQ(destroyed, 31);
  queue->wait_idle();
}

TEST(WorkQueue, TimersRunInTheOrderOfTheirTimes) {
  auto queue = WorkQueue::create({.threads = 1});
  Log log;
  std::latch last(1);
  const auto now = WorkQueue::Clock::now();
  using std::chrono::milliseconds;
  queue->add_at(WorkQueue::Clock::time_point::max(), [&] { ADD_FAILURE() << "not in our life time"; });
  queue->add_at(now + milliseconds(6), log.entry("third"));
  queue->add_at(now + milliseconds(2), log.entry("first"));
  queue->add_at(now + milliseconds(4), log.entry("second"));
  queue->add_at(now + milliseconds(8), [&] {
    EXPECT_GE(WorkQueue::Clock::now(), now + milliseconds(8));
    EXPECT_TRUE(WorkQueue::is_worker_thread());
    last.count_down();
  });
  last.wait();
  queue->wait_idle();
  EXPECT_EQ(log.ran, (std::vector<std::string>{"first", "second", "third"}));
}

TEST(WorkQueue, TimersThatAreNotDueAreDestroyedAtShutdown) {
  auto held = std::make_shared<int>(0);
  auto queue = WorkQueue::create({.threads = 1});
  queue->add_at(WorkQueue::Clock::now() + std::chrono::hours(1), [held] { ADD_FAILURE(); });
  queue->wait_idle();  // which does not wait for it
  EXPECT_EQ(held.use_count(), 2);
  queue->shutdown(Shutdown::kDrain);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(WorkQueue, ATimerThatIsRemovedIsDestroyedAtOnceAndDoesNotRun) {
  auto held = std::make_shared<int>(0);
  auto queue = WorkQueue::create({.threads = 1});
  const auto now = WorkQueue::Clock::now();
  const auto first = queue->add_at(now + std::chrono::hours(1), [held] { ADD_FAILURE(); });
  std::latch ran(1);
  const auto second = queue->add_at(now, [&] { ran.count_down(); });
  EXPECT_TRUE(second < first);
  EXPECT_TRUE(queue->remove_timer(first));
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(queue->remove_timer(first));
  EXPECT_FALSE(queue->remove_timer(WorkQueue::Timer()));
  ran.wait();
  EXPECT_FALSE(queue->remove_timer(second));
  // One that comes before those that the thread waits for.
  std::latch soon(1);
  (void)queue->add_at(now + std::chrono::hours(1), [] {});
  (void)queue->add_at(now, [&] { soon.count_down(); });
  soon.wait();
}

TEST(WorkQueue, ItsDestructorDrains) {
  std::atomic<int> ran{0};
  {
    auto queue = WorkQueue::create({.threads = 2});
    for (int i = 0; i < 100; ++i) queue->add(i, 0, [&] { ++ran; });
    queue->add_blocking([&] { ++ran; });
  }
  EXPECT_EQ(ran, 101);
}

TEST(WorkQueue, ItsLastReferenceMayBeDroppedOnAThreadOfItsOwn) {
  for (const bool is_blocking : {false, true}) {
    std::atomic<int> ran{0};
    std::latch all_ran(51), dropped(1);
    auto queue = WorkQueue::create({.threads = 1});
    queue->add_at(WorkQueue::Clock::time_point::max(), [] { ADD_FAILURE(); });
    queue->add_blocking([] {});
    auto drop = [&, queue]() mutable {
      dropped.wait();  // until only this one is left
      queue.reset();
      all_ran.count_down();
    };
    if (is_blocking) {
      queue->add_blocking(std::move(drop));
    } else {
      queue->add(1, 1, std::move(drop));
    }
    for (int i = 0; i < 25; ++i) {
      queue->add(1, 0, [&] { all_ran.count_down(); });
      queue->add_blocking([&] { all_ran.count_down(); });
    }
    queue.reset();
    dropped.count_down();
    all_ran.wait();
  }
}

TEST(WorkQueue, ATaskMayEndAnotherQueueWithoutBlocking) {
  auto outer = WorkQueue::create({.threads = 1});
  auto inner = WorkQueue::create({.threads = 1});
  std::latch ran(1), ended(1);
  inner->add(1, 0, [&] {
    ended.wait();
    ran.count_down();
  });
  outer->add(1, 0, [&, inner = std::move(inner)]() mutable {
    inner.reset();
    ended.count_down();
  });
  ran.wait();
  outer->wait_idle();
}

TEST(WorkQueueDeathTest, RefusesToBlockItsThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto on_worker = [](auto body) {
    auto queue = WorkQueue::create({.threads = 1});
    queue->add(1, 0, [&] { body(*queue); });
    queue->wait_idle();
  };
  const auto on_blocking = [](auto body) {
    auto queue = WorkQueue::create({.threads = 1});
    queue->add_blocking([&] { body(*queue); });
    queue->wait_idle();
  };
  const auto wait_pending = [](WorkQueue&) { wait(make_unconstructed_async_value<int>()); };
  const auto wait_ready = [](WorkQueue&) { wait(make_available_async_value<int>(1)); };
  constexpr const char* kRefusal = "wait\\(\\) on a worker thread would block work that it waits for";
  EXPECT_DEATH(on_worker(wait_pending), kRefusal);
  EXPECT_DEATH(on_worker(wait_ready), kRefusal);
  EXPECT_DEATH(on_blocking(wait_pending), kRefusal);
  EXPECT_DEATH(on_worker([](WorkQueue& queue) { queue.wait_idle(); }), "wait_idle\\(\\) on a worker thread");
  EXPECT_DEATH(on_worker([](WorkQueue& queue) { queue.shutdown(Shutdown::kDrop); }),
               "shutdown\\(\\) on a worker");
  EXPECT_DEATH(
      {
        auto queue = WorkQueue::create({.threads = 1});
        queue->shutdown(Shutdown::kDrain);
        queue->shutdown(Shutdown::kDrain);
      },
      "a work queue is shut down once");
}

TEST(WorkQueue, OptionsThatMeanNothingAreFailedChecks) {
  EXPECT_DEATH(WorkQueue::create({.threads = -1}), "threads >= 0 \\(-1 >= 0\\)");
  EXPECT_DEATH(WorkQueue::create({.threads = 1, .blocking_threads = 0}),
               "blocking_threads >= 1 \\(0 >= 1\\)");
  EXPECT_DEATH(WorkQueue::create({.threads = 1, .blocking_threads = -3}),
               "blocking_threads >= 1 \\(-3 >= 1\\)");
}

TEST(WorkQueue, HostThreadsMayWaitForWhatItsTasksSet) {
  auto queue = WorkQueue::create({.threads = 1});
  auto value = make_unconstructed_async_value<int>();
  queue->add(1, 0, [value] { value.emplace(42); });
  wait(value);
  EXPECT_EQ(value.get(), 42);
}

TEST(WorkQueue, NamesTheRowsOfATrace) {
  char folder[] = "/tmp/coppice_queue_XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/trace.json";
  Trace::start(path);
  {
    auto queue = WorkQueue::create({.threads = 1});
    queue->add(1, 0, [] { const TraceScope scope("computed"); });
    queue->add_blocking([] { const TraceScope scope("read"); });
  }
  Trace::stop();
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove_all(folder);
  for (const char* part : {"\"compute 0\"", "\"blocking 0\"", "\"computed\"", "\"read\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

}  // namespace
}  // namespace coppice::executor
