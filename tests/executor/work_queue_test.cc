// executor/work_queue.h: order, fairness, shutdown, timers. Order is made deterministic by parking the only thread.
#include "executor/work_queue.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/async_value.h"

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

// What ran, in order. Only for queues with one compute thread, read after wait_idle() or shutdown().
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

}  // namespace
}  // namespace coppice::executor
