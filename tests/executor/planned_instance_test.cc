// Instances of planned functions: runs that wait, are cancelled, or come from many threads.
#include <gtest/gtest.h>

#include <thread>

#include "core/live_objects.h"
#include "executor/capped_memory.h"
#include "tests/executor/bytes_operations.h"

namespace coppice::executor {
namespace {

const char* const kChain = R"(
  func @main(%n: i32) -> (bytes, i32) {
    %a = iota (%n, %n)
    %b = iota (%n, %n)
    %c = mix (%a, %b)
    %d = shift 7 (%c)
    %e = both (%d, %c)
    %s = sum (%d)
    return %e, %s
  })";

std::vector<int32_t> wrapped(int32_t n) {
  std::vector<int32_t> items;
  for (int32_t i = 0; i < n; ++i) items.push_back(wrapping(i, n));
  return items;
}

TEST(PlannedInstance, ARunThatWaitsCanBeCancelledAndTheInstanceRunsAgain) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %l = later (%a)
      %s = sum (%l)
      return %s
    })");
  const auto results = p.run({number(6)});
  EXPECT_FALSE(results[0]->is_available());
  p.request->cancel();
  ASSERT_TRUE(results[0]->is_error());
  EXPECT_EQ(results[0]->error().code(), ErrorCode::kCancelled);
  const auto request = p.host->start_request();
  const auto again = p.instance->run({number(6)}, *request);
  p.later().run_all();
  EXPECT_FALSE(again[0]->is_error());
  EXPECT_TRUE(again[0]->is_available());
  const auto skipped = p.instance->run({number(6)}, *p.request);
  EXPECT_EQ(skipped[0]->error().code(), ErrorCode::kCancelled) << "its request stays cancelled";
}

TEST(PlannedInstance, WhatComesLaterIsWaitedForWithoutBlocking) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> (i32, bytes) {
      %a = iota (%n, %n)
      %l = later (%a)
      %b = shift 1 (%a)
      %m = mix (%l, %b)
      %l2 = later (%m)
      %e = shift 9 (%l2)
      %s = sum (%e)
      return %s, %e
    })");
  const auto expected = [&] {
    auto results = p.run_executor({number(6)});
    p.later().run_all();
    return results;
  }();
  for (int run = 0; run < 3; ++run) {
    const auto results = p.run({number(6)});
    EXPECT_FALSE(results[0]->is_available());
    EXPECT_NE(
        p.request->describe_waiting().find("@main mix (line 6) waits for %l (later, which has started)\n"),
        std::string::npos)
        << p.request->describe_waiting();
    p.later().run_all();
    ASSERT_TRUE(results[0]->is_available());
    EXPECT_EQ(results[0]->get<int32_t>(), expected[0]->get<int32_t>());
    EXPECT_EQ(items_of(*results[1]), items_of(*expected[1]));
    EXPECT_EQ(p.request->describe_waiting(), "");
  }
}

// The executor starts what needs nothing of a value that comes later; a planned run does all in the text's
// order (docs/plans.md, "Waits").
TEST(PlannedInstance, AWaitHoldsUpWhatFollowsInTheText) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> (i32, i32, i32) {
      %a = iota (%n, %n)
      %b = shift 1 (%a)
      %x = note (%b)
      %l = later (%a)
      %y = note (%l)
      %z = note (%a)
      return %x, %y, %z
    })");
  noted_bytes().take();
  const auto executed = p.run_executor({number(6)});
  EXPECT_EQ(noted_bytes().take().size(), 2u) << "of %b and %a";
  p.later().run_all();
  noted_bytes().take();
  const auto planned = p.run({number(6)});
  std::vector<HostBytes> noted = noted_bytes().take();
  EXPECT_EQ(noted.size(), 1u) << "of %b";
  p.later().run_all();
  for (HostBytes& bytes : noted_bytes().take()) noted.push_back(std::move(bytes));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(planned[i]->get<int32_t>(), executed[i]->get<int32_t>()) << i;
  const std::vector<int32_t> a = wrapped(6);
  std::vector<int32_t> b;
  for (const int32_t item : a) b.push_back(wrapping(item, 1));
  EXPECT_EQ(items_of(noted), (std::vector{b, a, a}));
}

TEST(PlannedInstanceDeathTest, TwoRunsAtOnceAreAFailedCheck) {
  PlannedProgram p(
      "func @main(%n: i32) -> i32 {\n%a = iota (%n, %n)\n%l = later (%a)\n%s = sum (%l)\nreturn %s\n}");
  const auto results = p.run({number(6)});
  EXPECT_DEATH((void)p.run({number(6)}), "an instance of @main begins a run before its last one has ended");
  p.later().run_all();
}

TEST(PlannedInstance, InstancesOfAPoolRunOnManyThreads) {
  const auto queue = WorkQueue::create({.threads = 2});
  PlannedProgram p(kChain, {}, queue);
  const InstancePool pool(p.plan);
  std::vector<std::vector<int32_t>> expected;
  for (int32_t n = 0; n < 40; ++n) expected.push_back(items_of(*p.run_executor({number(n)})[0]));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int32_t k = 0; k < 200; ++k) {
        const int32_t n = (k * 7 + t) % 40;
        const auto lease = pool.borrow();
        const auto results = lease->run({number(n)}, *p.request);
        if (items_of(*results[0]) != expected[static_cast<size_t>(n)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LE(pool.num_idle(), 8u);
  EXPECT_GE(pool.num_idle(), 1u);
}

TEST(PlannedInstance, APoolLeavesAnInstanceAloneThatStillWaits) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %l = later (%a)
      %s = sum (%l)
      return %s
    })");
  const InstancePool pool(p.plan);
  const auto first = pool.borrow()->run({number(4)}, *p.request);
  const auto second = pool.borrow()->run({number(5)}, *p.request);
  EXPECT_EQ(pool.num_idle(), 2u);
  p.later().run_all();
  EXPECT_TRUE(first[0]->is_concrete());
  EXPECT_TRUE(second[0]->is_concrete());
  (void)pool.borrow()->run({number(6)}, *p.request);
  EXPECT_EQ(pool.num_idle(), 2u) << "and takes it again when its run has ended";
  p.later().run_all();
}

TEST(PlannedInstance, CancellingGivesWhatIsThereAndLetsGoOfArguments) {
  PlannedProgram p(R"(
    func @main(%n: i32, %x: bytes) -> (bytes, i32, i32) {
      %a = iota (%n, %n)
      %t = sum (%a)
      %l = later (%x)
      %s = sum (%l)
      return %a, %s, %t
    })");
  const auto x = p.run_executor({number(3), make_available_async_value<HostBytes>().release_rc_reference()});
  p.later().run_all();
  const RCReference<AsyncValue> argument = x[0];
  const auto results = p.run({number(5), argument});
  p.request->cancel();
  EXPECT_EQ(items_of(*results[0]), wrapped(5));
  EXPECT_EQ(results[1]->error().code(), ErrorCode::kCancelled);
  EXPECT_TRUE(results[2]->is_concrete());
  p.later().run_all();
  EXPECT_EQ(argument.use_count(), 2u) << "x and argument";
}

TEST(PlannedInstance, ARunThatWaitsKeepsArgumentsThatItReturns) {
  PlannedProgram p(R"(
    func @main(%x: bytes, %n: i32) -> (bytes, i32, i32) {
      %l = later (%x)
      %s = sum (%l)
      return %x, %s, %n
    })");
  std::vector<RCReference<AsyncValue>> results;
  {
    HostBytes bytes(8, *std::pmr::new_delete_resource());
    std::ranges::fill(std::span(reinterpret_cast<int32_t*>(bytes.data()), 2), 5);
    results =
        p.run({make_available_async_value<HostBytes>(std::move(bytes)).release_rc_reference(), number(7)});
  }
  p.later().run_all();
  EXPECT_EQ(items_of(*results[0]), (std::vector<int32_t>{5, 5}));
  EXPECT_TRUE(results[1]->is_concrete());
  EXPECT_EQ(results[2]->get<int32_t>(), 7);
}

TEST(PlannedInstance, ALoopOfACancelledRequestIsSkipped) {
  PlannedProgram p(R"(
    func @f(%x: i32) -> i32 { return %x }
    func @main(%n: i32) -> i32 {
      %zero = constant.i32 0
      %m = repeat @f (%zero, %n)
      return %m
    })");
  p.request->cancel();
  EXPECT_EQ(p.run({number(4)})[0]->error().code(), ErrorCode::kCancelled);
}

// StaticRuntime.CleanUpMemory: an instance holds nothing of a run that has ended.
TEST(PlannedInstance, AnInstanceHoldsNothingOfAnEndedRun) {
  PlannedProgram p(kChain);
  (void)p.run({number(8)});
  (void)p.run({number(8)});
  const LeakCheck check;
  for (int run = 0; run < 3; ++run) (void)p.run({number(8)});
  EXPECT_EQ(check.report(), "");
}

// A value for which there was no memory has its place again in the next run.
TEST(PlannedInstance, ARunWithoutMemoryLeavesTheNextOnesAsTheyWere) {
  CappedMemory memory(512);
  const auto host = make_intrusive<Host>(nullptr, memory);
  PlannedProgram p(R"(
    func @main(%n: i32) -> (bytes, bytes) {
      %a = iota (%n, %n)
      %b = shift 1 (%a)
      %c = shift 1 (%b)
      return %b, %c
    })");
  const auto run = [&](int32_t n) {
    const auto request = host->start_request();
    return !p.instance->run({number(n)}, *request)[1]->is_error();
  };
  EXPECT_TRUE(run(4));
  EXPECT_TRUE(run(4));
  EXPECT_FALSE(run(1000));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(run(4)) << i;
  EXPECT_TRUE(run(1));
  const int64_t outgrown = p.instance->counters().outgrown;
  EXPECT_TRUE(run(4));
  EXPECT_EQ(p.instance->counters().outgrown, outgrown);
}

}  // namespace
}  // namespace coppice::executor
