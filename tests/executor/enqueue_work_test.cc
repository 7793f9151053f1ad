// executor/enqueue_work.h: results of work on a host's threads.
#include "executor/enqueue_work.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>

#include "core/live_objects.h"
#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

TEST(EnqueueWork, RunsAtOnceWithoutAQueue) {
  const auto host = make_intrusive<Host>();
  EXPECT_EQ(enqueue_work(*host, [] { return 7; }).get(), 7);
  EXPECT_EQ(*enqueue_blocking_work(*host, [] { return std::make_unique<int>(8); }).get(), 8);
  int ran = 0;
  const AsyncValueRef<Chain> done = enqueue_work(*host->start_request(), [&] { ++ran; });
  EXPECT_TRUE(done.is_concrete());
  EXPECT_EQ(ran, 1);
}

TEST(EnqueueWork, RunsOnTheQueuesThreads) {
  const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 1}));
  const auto request = host->start_request();
  const auto is_compute = [&] { return host->queue()->is_compute_thread(); };
  for (const auto& on_compute : {enqueue_work(*host, is_compute), enqueue_work(*request, is_compute)}) {
    wait(on_compute);
    EXPECT_TRUE(on_compute.get());
  }
  for (const auto& blocking :
       {enqueue_blocking_work(*host, is_compute), enqueue_blocking_work(*request, is_compute)}) {
    wait(blocking);
    EXPECT_FALSE(blocking.get());
  }
}

TEST(EnqueueWork, WhatItThrowsIsTheError) {
  const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 1}));
  const auto failed = enqueue_work(*host, []() -> int { throw Error(ErrorCode::kIo, "unread"); });
  wait(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kIo);
  const auto nothing = enqueue_work(*host, [] { throw std::bad_alloc(); });
  wait(nothing);
  EXPECT_EQ(nothing.error().code(), ErrorCode::kOutOfMemory);
}

TEST(EnqueueWork, WhatTheQueueDropsOrRefusesIsCancelled) {
  const LeakCheck check;
  {
    const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 1}));
    std::latch is_running(1), may_end(1);
    const auto first = enqueue_work(*host, [&] {
      is_running.count_down();
      may_end.wait();
    });
    is_running.wait();
    const auto dropped = enqueue_work(*host, [] { return 1; });
    dropped.and_then([&] { may_end.count_down(); });
    host->queue()->shutdown(WorkQueue::Shutdown::kDrop);
    EXPECT_TRUE(first.is_concrete());
    EXPECT_EQ(dropped.error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(enqueue_work(*host, [] { return 1; }).error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(enqueue_blocking_work(*host, [] { return 1; }).error().code(), ErrorCode::kCancelled);
  }
  EXPECT_EQ(check.report(), "");
}

// Who hears of a result may destroy what the work held on to: a file, or memory that it wrote to.
TEST(EnqueueWork, WhatTheWorkHoldsIsGoneWhenItsResultIsThere) {
  const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 1}));
  for (const bool fails : {false, true}) {
    auto held = std::make_shared<int>(1);
    std::latch may_end(1);
    const std::weak_ptr<int> watched = held;
    const auto result = enqueue_work(*host, [&, held = std::move(held)] {
      may_end.wait();
      if (fails) throw Error(ErrorCode::kIo, "unread");
      return *held;
    });
    const auto is_gone = result.get_async_value();
    bool was_gone = false;
    is_gone->and_then([&] { was_gone = watched.expired(); });
    may_end.count_down();
    wait(result);
    EXPECT_TRUE(was_gone) << fails;
  }
}

// The seed's AsyncCopy.
TEST(EnqueueWork, MakesOperationsAsynchronous) {
  struct Copy {
    static void add(Registry& registry) {
      registry.add("copy", [](Argument<int32_t> in, Request& request) {
        return enqueue_work(request, [in = in.value_ref()] { return in.get(); });
      });
    }
  };
  Program p("func @main(%x: i32) -> i32 { %y = copy (%x) %z = add.i32 (%y, %y) return %z }",
            WorkQueue::create({.threads = 1}), &Copy::add);
  std::latch may_end(1);
  (void)enqueue_work(*p.host, [&] { may_end.wait(); });
  const auto z = p.run("main", {i32(21)})[0];
  EXPECT_FALSE(z->is_available()) << "the only thread is busy";
  may_end.count_down();
  wait(*z);
  EXPECT_EQ(z->get<int32_t>(), 42);
}

}  // namespace
}  // namespace coppice::executor
