// A worker whose packets and functions are one thread's.
#include "executor/remote/driver.h"

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "executor/builtin_operations.h"
#include "executor/text.h"

namespace coppice::executor::remote {
namespace {

// Two workers in one process; each is a thread's own.
struct Driven {
  Driven(WorkerId self, LocalNetwork& network, const Registry& registry)
      : transport(network.transport(self)),
        queue(make_intrusive<DrivenQueue>(*transport)),
        worker({.protocol = {.self = self, .n_workers = 2, .session = 1}}, *transport, clock,
               make_intrusive<Host>(queue), codecs()),
        driver(worker, *transport, clock, *queue) {
    module = worker.add_module(LoadedModule::load(parse(R"(
      func @add(%a: i32, %b: i32) -> i32 { %c = add.i32 (%a, %b) return %c }
      func @fetch(%r: remote.i32) -> i32 { %v = fetch (%r) return %v }
      func @thread() -> i32 { %v = thread return %v }
      func @slow(%a: i32) -> i32 { %v = slow (%a) return %v })"),
                                                  registry));
  }
  static Codecs codecs() {
    Codecs codecs;
    codecs.add_remote<int32_t>();
    return codecs;
  }
  void wait_closed() {
    queue->wait_idle();
    driver.wait(worker.shutdown());
  }

  std::unique_ptr<Transport> transport;
  const SteadyClock clock;
  IntrusivePtr<DrivenQueue> queue;
  Worker worker;
  Driver driver;
  Hash128 module;
};

class DriverTest : public testing::Test {
 protected:
  DriverTest() {
    add_builtin_operations(registry);
    registry.add_type<RemoteRef<int32_t>>("remote.i32");
    registry.add("fetch", [](const RemoteRef<int32_t>& r) { return r.to_here(); });
    registry.add("thread",
                 [this] { return static_cast<int32_t>(std::this_thread::get_id() == other_thread); });
    // Something else's thread completes it.
    registry.add("slow", [this](int32_t a) {
      auto promise = make_promise<int32_t>();
      auto value = promise.value();
      threads.emplace_back([promise = std::move(promise), a]() mutable { promise.emplace(a + 1); });
      return value;
    });
    std::promise<void> is_ready;
    other = std::thread([this, &is_ready] {
      other_thread = std::this_thread::get_id();
      Driven driven(1, network, registry);
      is_ready.set_value();
      driven.driver.run_until([&] { return driven.worker.state() == Protocol::State::kClosed || is_over; });
      driven.wait_closed();
    });
    is_ready.get_future().wait();
  }
  void end(Driven& here) {
    is_over = true;
    wakes->wake();
    here.wait_closed();
    other.join();
    for (std::thread& t : threads) t.join();
  }

  LocalNetwork network{2};
  Registry registry;
  std::thread::id other_thread;
  std::vector<std::thread> threads;
  std::atomic<bool> is_over{false};
  std::unique_ptr<Transport> wakes = network.transport(1);  // another end of worker 1's mailbox
  std::thread other;
};

TEST_F(DriverTest, FunctionsRunOnTheThreadThatDrives) {
  Driven here(0, network, registry);
  const auto thread = here.worker.rpc_async<int32_t>(1, {here.module, "thread"});
  here.driver.wait(thread);
  EXPECT_EQ(thread.get(), 1);
  end(here);
}

TEST_F(DriverTest, ObjectsCallsAndErrorsComeBack) {
  Driven here(0, network, registry);
  for (int i = 0; i < 200; ++i) {
    const auto sum = here.worker.remote<int32_t>(1, {here.module, "add"}, i, 1);
    const auto value = sum.to_here();
    const auto fetched = here.worker.rpc_async<int32_t>(1, {here.module, "fetch"}, sum);
    here.driver.wait(value);
    here.driver.wait(fetched);
    ASSERT_EQ(value.get(), i + 1);
    ASSERT_EQ(fetched.get(), i + 1);
  }
  end(here);
}

TEST_F(DriverTest, ValuesThatOtherThreadsCompleteWakeIt) {
  Driven here(0, network, registry);
  for (int i = 0; i < 50; ++i) {
    const auto slow = here.worker.rpc_async<int32_t>(1, {here.module, "slow"}, i);
    here.driver.wait(slow);
    ASSERT_EQ(slow.get(), i + 1);
  }
  end(here);
}

TEST(DrivenQueue, RunsWhatTasksAddAndRefusesWhatComesAfterTheEnd) {
  LocalNetwork network(1);
  const auto transport = network.transport(0);
  const auto queue = make_intrusive<DrivenQueue>(*transport);
  int n = 0;
  EXPECT_TRUE(queue->is_short_of_work());
  EXPECT_TRUE(queue->add(0, 0, [&] {
    ++n;
    EXPECT_TRUE(queue->is_compute_thread());
    queue->add(0, 0, [&] { ++n; });
  }));
  EXPECT_FALSE(queue->is_short_of_work());
  EXPECT_EQ(n, 0);
  EXPECT_TRUE(queue->run_all());
  EXPECT_EQ(n, 2);
  EXPECT_FALSE(queue->run_all());
  EXPECT_TRUE(queue->add_blocking([&] { queue->add(0, 0, [&] { ++n; }); }));
  queue->wait_idle();
  EXPECT_EQ(n, 3);
  queue->add(0, 0, [&] { ++n; });
  queue->shutdown(WorkQueue::Shutdown::kDrop);
  EXPECT_FALSE(queue->add(0, 0, [&] { ++n; }));
  EXPECT_EQ(n, 3);
}

TEST(DrivenQueueDeathTest, ATaskDoesNotRunOthers) {
  LocalNetwork network(1);
  const auto transport = network.transport(0);
  const auto queue = make_intrusive<DrivenQueue>(*transport);
  queue->add(0, 0, [&] { queue->run_all(); });
  EXPECT_DEATH(queue->run_all(), "a driven queue's tasks are run by a task");
  queue->shutdown(WorkQueue::Shutdown::kDrop);
}

}  // namespace
}  // namespace coppice::executor::remote
