// Operations overlap: those that need each other meet, each on a thread of its own, or nobody gets any
// further.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

// Two threads that wait for each other. The limit is for a run that fails: one that
// succeeds does not come near it.
class Meeting {
 public:
  int32_t wait_for_other() {
    std::unique_lock lock(mutex_);
    const int pairs = arrived_++ / 2 + 1;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(1), [&] { return arrived_ >= 2 * pairs; }) ? 1 : 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
};

// Events whose work is done when the test says so.
struct Events {
  std::vector<AsyncValueRef<Chain>> put;
};

// meet.i32 (a) -> i32             a compute operation: 1 when another one runs at the same time, else 0
// meet_inline.i32 (a) -> i32      the same, called an inline one, as what nobody knows to take long
// put.i32 "name" (event, a) -> event      queues work on a stream
// early.i32 (a) -> (i32, i32)     later completes its first result, and meets another operation for the second
// begin.i32 (a) -> (i32, chain)   a + 1, and something that is under way until Later ends it; notes a
void add_overlap_operations(Registry& registry) {
  const auto meet = [](int32_t, Request& r) { return r.host().shared<Meeting>().wait_for_other(); };
  registry.add("meet.i32", meet, {.run = Run::kCompute});
  registry.add("meet_inline.i32", meet);
  registry.add("compute.i32", [](int32_t a) { return a; }, {.run = Run::kCompute});
  registry.add("put.i32", [](Constant<std::string_view> name, After, int32_t, Request& request) {
    request.host().shared<Notes>().add(std::string(name.get()));
    auto done = make_unconstructed_async_value<Chain>();
    request.host().shared<Events>().put.push_back(done);
    return StreamEvent{done};
  });
  registry.add("early.i32", [](int32_t a, Result<int32_t> early, Result<int32_t> late, Request& request) {
    request.host().shared<Later>().add(
        [a, host = &request.host(), early = early.allocate(), late = late.allocate()]() mutable {
          early.emplace(a);
          late.emplace(host->shared<Meeting>().wait_for_other());
        });
  });
  registry.add("begin.i32", [](int32_t a, Result<int32_t> next, Result<Chain> done, Request& request) {
    request.host().shared<Notes>().add(fmt::format("begin {}", a));
    request.host().shared<Later>().add([done = done.allocate()]() mutable { done.emplace(); });
    next.emplace(a + 1);
  });
}

struct OverlapProgram : Program {
  explicit OverlapProgram(std::string_view text, int threads = 2)
      : Program(text, threads > 0 ? WorkQueue::create({.threads = threads}) : nullptr,
                &add_overlap_operations) {}
  int32_t wait_for(const RCReference<AsyncValue>& value) const {
    wait(*value);
    return value->is_error() ? -1 : value->get<int32_t>();
  }
};

constexpr const char* kMeetings = R"(
func @meet(%x: i32) -> i32 { %y = meet.i32 (%x) return %y }
func @meet_inline(%x: i32) -> i32 { %y = meet_inline.i32 (%x) return %y }
func @calls(%x: i32) -> i32 {
  %a = call @meet (%x)
  %b = call @meet (%x)
  %c = mul.i32 (%a, %b)
  return %c
}
func @branches(%x: i32) -> i32 {
  %yes = equal.i32 (%x, %x)
  %a = if @meet, @meet (%yes, %x)
  %b = case @meet (%x, %x)
  %c = mul.i32 (%a, %b)
  return %c
}
func @repeats(%x: i32) -> i32 {
  %one = constant.i32 1
  %a = repeat @meet_inline (%one, %x)
  %b = repeat @meet_inline (%one, %x)
  %c = mul.i32 (%a, %b)
  return %c
}
func @calls_of_calls(%x: i32) -> i32 {
  %a = call @outer (%x)
  %b = call @outer (%x)
  %c = mul.i32 (%a, %b)
  return %c
}
func @outer(%x: i32) -> i32 { %y = call @meet (%x) return %y }
)";

// From the thread that executes, and from a thread of the queue.
TEST(ExecutorOverlap, IndependentCallsAndLoopsRunOnIdleThreads) {
  for (const char* what : {"calls", "branches", "repeats", "calls_of_calls"}) {
    OverlapProgram p(
        fmt::format("{}func @later(%x: i32) -> i32 {{\n  %y = compute.i32 (%x)\n  %z = call @{} "
                    "(%y)\n  return %z\n}}\n",
                    kMeetings, what));
    EXPECT_EQ(p.wait_for(p.run(what, {i32(0)})[0]), 1) << what;
    EXPECT_EQ(p.wait_for(p.run("later", {i32(0)})[0]), 1) << what << ", from a thread of the queue";
  }
}

TEST(ExecutorOverlap, WaitersOfOneValueRunOnSeveralThreadsWhereverItIsCompleted) {
  for (const char* function : {"meet", "outer", "branch", "loop"}) {
    OverlapProgram p(fmt::format(R"({}
func @branch(%x: i32) -> i32 {{ %y = case @meet (%x, %x) return %y }}
func @loop(%x: i32) -> i32 {{ %y = repeat @meet_inline (%x, %x) return %y }}
)",
                                 kMeetings));
    const auto x = make_unconstructed_async_value<int32_t>();
    const auto a = p.run(function, {x})[0], b = p.run(function, {x})[0];
    const bool is_loop = std::string_view(function) == "loop";
    p.host->queue()->add(0, 0, [&] { x.emplace(is_loop ? 1 : 0); });
    EXPECT_EQ(p.wait_for(a) * p.wait_for(b), 1) << function;
  }
}

// An operation that completes one of its results goes on computing: what waited for
// the result does not wait for it.
TEST(ExecutorOverlap, WhatWaitsForAResultDoesNotWaitForTheRestOfItsOperation) {
  OverlapProgram p(R"(
func @main(%x: i32) -> (i32, i32) {
  %early, %late = early.i32 (%x)
  %met = meet.i32 (%early)
  return %met, %late
})");
  const auto results = p.run("main", {i32(0)});
  p.host->queue()->add(0, 0, [&] { p.later().run_all(); });
  EXPECT_EQ(p.wait_for(results[0]) * p.wait_for(results[1]), 1);
}

TEST(ExecutorOverlap, ExecuteReturnsOnceItsWorkIsHandedOver) {
  for (const char* text :
       {"func @main(%x: i32) -> i32 { %y = meet.i32 (%x) return %y }",
        "func @main(%x: i32) -> i32 { %y = call @f (%x) return %y }\n"
        "func @f(%x: i32) -> i32 { %y = meet.i32 (%x) return %y }",
        "func @main(%x: i32) -> i32 { %n = constant.i32 1 %y = repeat @f (%n, %x) return %y }\n"
        "func @f(%x: i32) -> i32 { %y = meet_inline.i32 (%x) return %y }"}) {
    OverlapProgram p(text, 1);
    const auto result = p.run("main", {i32(0)})[0];
    EXPECT_EQ(p.host->shared<Meeting>().wait_for_other(), 1) << text;
    EXPECT_EQ(p.wait_for(result), 1);
  }
}

// Work that a stream has taken lets the next be queued, also where the event comes out of a function that had
// to wait for something else before.
TEST(ExecutorOverlap, AnEventKeepsTheStreamsOrderThroughCallsBranchesAndLoops) {
  for (const char* put : {"call @put (%e, %a)", "if @put, @put (%yes, %e, %a)", "call @outer (%e, %a)",
                          "call @loop (%e, %a, %n)"}) {
    OverlapProgram p(fmt::format(R"(
func @put(%e: event, %a: i32) -> event {{ %f = put.i32 "first" (%e, %a) return %f }}
func @outer(%e: event, %a: i32) -> event {{ %f = call @put (%e, %a) return %f }}
func @body(%e: event, %a: i32) -> (event, i32) {{ %f = put.i32 "first" (%e, %a) return %f, %a }}
func @loop(%e: event, %a: i32, %n: i32) -> event {{
  %f, %b = repeat @body, 2 (%n, %e, %a)
  return %f
}}
func @main(%c: chain, %a: i32, %yes: bool, %n: i32) -> chain {{
  %e = stream.start (%c)
  %f = {}
  %one = constant.i32 1
  %g = put.i32 "second" (%f, %one)
  %done = stream.done (%g)
  return %done
}})",
                                 put),
                     0);
    const auto a = make_unconstructed_async_value<int32_t>();
    const auto yes = make_unconstructed_async_value<bool>();
    const auto n = make_unconstructed_async_value<int32_t>();
    const auto done = p.run("main", {make_available_async_value<Chain>(), a, yes, n})[0];
    EXPECT_EQ(p.notes(), std::vector<std::string>());
    a.emplace(1), yes.emplace(true), n.emplace(1);
    EXPECT_EQ(p.notes(), (std::vector<std::string>{"first", "second"})) << put;
    EXPECT_FALSE(done->is_available());
    for (const auto& event : p.host->shared<Events>().put) event.emplace();
    EXPECT_TRUE(done->is_concrete());
  }
}

TEST(ExecutorOverlap, AnIterationThatEndsLetsAnotherBeginAtOnce) {
  OverlapProgram p(R"(
func @body(%n: i32, %last: chain) -> (i32, chain) { %m, %c = begin.i32 (%n) return %m, %c }
func @main(%count: i32, %n: i32, %c: chain) -> (i32, chain) {
  %m, %d = repeat @body, 3 (%count, %n, %c)
  return %m, %d
})",
                   0);
  const auto results = p.run("main", {i32(6), i32(0), make_available_async_value<Chain>()});
  using NoteList = std::vector<std::string>;
  EXPECT_EQ(p.notes(), (NoteList{"begin 0", "begin 1", "begin 2"}));
  for (const char* next : {"begin 3", "begin 4", "begin 5"}) {
    EXPECT_TRUE(p.later().run_one());
    EXPECT_EQ(p.notes(), NoteList{next});
  }
  EXPECT_EQ(results[0]->get<int32_t>(), 6);
  EXPECT_FALSE(results[1]->is_available());
  p.later().run_all();
  EXPECT_TRUE(results[1]->is_concrete());
}

}  // namespace
}  // namespace coppice::executor
