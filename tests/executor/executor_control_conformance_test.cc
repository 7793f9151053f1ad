// The executor's conformance list: control flow (57), uniqueness and strictness (58), errors and leaks (59),
// and what the list does not name: graphs that cannot progress, rings, memory.
#include <gtest/gtest.h>

#include <latch>
#include <limits>
#include <thread>

#include "core/live_objects.h"
#include "executor/capped_memory.h"
#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

using NoteList = std::vector<std::string>;

RCReference<AsyncValue> boolean(bool value) { return make_available_async_value<bool>(value); }

std::string load_error(std::string_view text) {
  Registry registry;
  add_builtin_operations(registry);
  add_test_operations(registry);
  try {
    LoadedModule::load(parse(text, "test.graph"), registry);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

constexpr const char* kBranches = R"(
func @plus(%x: i32) -> i32 { %one = constant.i32 1 %y = add.i32 (%x, %one) return %y }
func @minus(%x: i32) -> i32 { %one = constant.i32 1 %y = sub.i32 (%x, %one) return %y }
func @twice(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }
func @if(%c: bool, %x: i32) -> i32 { %y = if @plus, @minus (%c, %x) return %y }
func @case(%i: i32, %x: i32) -> i32 { %y = case @plus, @minus, @twice (%i, %x) return %y }
)";

TEST(ExecutorConformance, N57_IfAndCaseRunTheFunctionThatIsChosen) {
  ProbedProgram p(kBranches);
  EXPECT_EQ(p.run("if", {boolean(true), i32(10)})[0]->get<int32_t>(), 11);
  EXPECT_EQ(p.run("if", {boolean(false), i32(10)})[0]->get<int32_t>(), 9);
  for (const int32_t i : {0, 1, 2})
    EXPECT_EQ(p.run("case", {i32(i), i32(10)})[0]->get<int32_t>(), (std::array{11, 9, 20}[i]));
  for (const int32_t i : {-1, 3}) {
    const auto result = p.run("case", {i32(i), i32(10)})[0];
    EXPECT_EQ(result->error().code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(result->error().message(), fmt::format("case {} of 3 functions", i));
  }
}

TEST(ExecutorConformance, N57_ABranchWaitsForItsConditionOnly) {
  ProbedProgram p(kBranches);
  const auto condition = make_unconstructed_async_value<bool>();
  const auto x = make_unconstructed_async_value<int32_t>();
  const auto known = p.run("if", {boolean(true), x})[0], unknown = p.run("if", {condition, i32(1)})[0];
  EXPECT_FALSE(known->is_available() || unknown->is_available());
  x.emplace(5);
  EXPECT_EQ(known->get<int32_t>(), 6);
  condition.emplace(false);
  EXPECT_EQ(unknown->get<int32_t>(), 0);
  const auto index = make_unconstructed_async_value<int32_t>();
  const auto late = p.run("case", {index, i32(1)})[0];
  index.emplace(7);
  EXPECT_EQ(late->error().message(), "case 7 of 3 functions");
}

TEST(ExecutorConformance, N57_AnErrorInAConditionBecomesEveryResult) {
  ProbedProgram p(kBranches);
  const auto wrong = make_error_async_value(Error(ErrorCode::kIo, "unread"));
  EXPECT_EQ(p.run("if", {wrong, i32(1)})[0]->error().message(), "unread");
  const auto later = make_unconstructed_async_value<bool>();
  const auto result = p.run("if", {later, i32(1)})[0];
  later.set_error(Error(ErrorCode::kIo, "unread, later"));
  EXPECT_EQ(result->error().message(), "unread, later");
}

constexpr const char* kLoops = R"(
func @add_one(%x: i32) -> i32 { %one = constant.i32 1 %y = add.i32 (%x, %one) return %y }
func @add_later(%x: i32) -> i32 { %one = constant.i32 1 %y = async_add.i32 (%x, %one) return %y }
func @sync(%n: i32, %x: i32) -> i32 { %y = repeat @add_one (%n, %x) return %y }
func @async(%n: i32, %x: i32) -> i32 { %y = repeat @add_later (%n, %x) return %y }
func @ahead(%n: i32, %x: i32) -> i32 { %y = repeat @add_later, 8 (%n, %x) return %y }
func @until(%x: i32, %limit: i32, %start: i32) -> (i32, i32, i32, bool) {
  %y = async_add.i32 (%x, %start)
  %more = less.i32 (%y, %limit)
  return %y, %limit, %start, %more
}
func @while(%c: bool, %x: i32, %limit: i32) -> i32 { %y, %l, %s = while @until (%c, %x, %limit, %x) return %y }
)";

TEST(ExecutorConformance, N57_ARepeatOfAThousandWithAnAsynchronousBody) {
  ProbedProgram p(kLoops);
  EXPECT_EQ(p.run("sync", {i32(1000), i32(5)})[0]->get<int32_t>(), 1005);
  for (const char* loop : {"async", "ahead"}) {
    const auto result = p.run(loop, {i32(1000), i32(5)})[0];
    EXPECT_TRUE(result->is_indirect() && !result->is_available());
    p.later().run_all();
    EXPECT_EQ(result->get<int32_t>(), 1005) << loop;
  }
  const auto count = make_unconstructed_async_value<int32_t>();
  const auto result = p.run("sync", {count, i32(5)})[0];
  count.emplace(3);
  EXPECT_EQ(result->get<int32_t>(), 8);
}

TEST(ExecutorConformance, N57_AWhileEndsWhenItsConditionSaysSo) {
  ProbedProgram p(kLoops);
  const auto result = p.run("while", {boolean(true), i32(3), i32(100)})[0];
  p.later().run_all();
  EXPECT_EQ(result->get<int32_t>(), 102);
  EXPECT_EQ(p.run("while", {boolean(false), i32(3), i32(100)})[0]->get<int32_t>(), 3) << "not once";
}

TEST(ExecutorConformance, N57_CancellingInTheFirstIterationEndsALoop) {
  ProbedProgram p(R"(
func @body(%x: i32) -> i32 { %a = note.i32 "body" (%x) %b = cancel (%a) return %b }
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @body (%n, %x) return %y }
)");
  const auto result = p.run("main", {i32(1000), i32(1)})[0];
  EXPECT_EQ(p.notes(), NoteList{"body 1"});
  EXPECT_EQ(result->error().code(), ErrorCode::kCancelled);
}

// The fourth iteration fails; its condition depends on what failed, so that the loop ends there.
TEST(ExecutorConformance, N57_AnErrorInAWhileBecomesAllItsResultsHoweverFarItRunsAhead) {
  for (const char* ahead : {"", ", 4"}) {
    for (const char* add : {"add.i32", "async_add.i32"}) {
      ProbedProgram p(fmt::format(R"(
func @body(%n: i32, %x: i32) -> (i32, i32, bool) {{
  %a = note.i32 "body" (%n)
  %minus = constant.i32 -1
  %m = {} (%a, %minus)
  %ok = div.i32 (%x, %m)
  %more = less.i32 (%ok, %x)
  return %m, %x, %more
}}
func @main(%c: bool, %n: i32, %x: i32) -> (i32, i32) {{
  %m, %y = while @body{} (%c, %n, %x)
  return %m, %y
}})",
                                  add, ahead));
      const auto results = p.run("main", {boolean(true), i32(5), i32(100)});
      p.later().run_all();
      EXPECT_EQ(p.notes(), (NoteList{"body 5", "body 4", "body 3", "body 2"}))
          << "100 / 1 is not less than 100";
      EXPECT_EQ(results[0]->get<int32_t>(), 1);
      const auto failed = p.run("main", {boolean(true), i32(3), i32(-100)});
      p.later().run_all();
      EXPECT_EQ(p.notes(), NoteList{"body 3"}) << "-50 is not less than -100";
      EXPECT_EQ(failed[0]->get<int32_t>(), 2);
      const auto all = p.run("main", {boolean(true), i32(1), i32(100)});
      p.later().run_all();
      EXPECT_EQ(p.notes(), NoteList{"body 1"});
      for (const auto& result : all) EXPECT_EQ(result->error().message(), "100 divided by zero");
    }
  }
}

TEST(ExecutorConformance, N57_ALoopEndsWhenAllThatItCarriesIsErrors) {
  ProbedProgram p(R"(
func @fail(%x: i32) -> i32 { %y = fail.i32 (%x) return %y }
func @fail_later(%x: i32) -> i32 { %y = async_fail.i32 (%x) return %y }
func @half(%x: i32, %y: i32) -> (i32, i32) {
  %a = fail.i32 (%x)
  %one = constant.i32 1
  %b = add.i32 (%y, %one)
  return %a, %b
}
func @one(%x: i32) -> i32 { %y = constant.i32 1 return %y }
func @constant(%n: i32, %x: i32) -> i32 { %y = repeat @one (%n, %x) return %y }
func @swap(%x: i32, %y: i32) -> (i32, i32) { return %y, %x }
func @swapped(%n: i32, %x: i32, %y: i32) -> (i32, i32) { %a, %b = repeat @swap (%n, %x, %y) return %a, %b }
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @fail (%n, %x) return %y }
func @later(%n: i32, %x: i32) -> i32 { %y = repeat @fail_later, 4 (%n, %x) return %y }
func @try(%x: i32) -> i32 { %one = constant.i32 1 %tried = note.i32 "tried" (%one) %y = fail.i32 (%tried) return %y }
func @retried(%n: i32, %x: i32) -> i32 { %y = repeat @try (%n, %x) return %y }
func @one_of_two(%n: i32, %x: i32) -> (i32, i32) { %y, %z = repeat @half (%n, %x, %x) return %y, %z }
)");
  const int32_t most = std::numeric_limits<int32_t>::max();
  const Error failed = p.run("main", {i32(most), i32(1)})[0]->error();
  EXPECT_EQ(failed.message(), "failed");
  EXPECT_EQ(failed.location().line, 2);
  EXPECT_STREQ(failed.what(), p.run("main", {i32(20), i32(1)})[0]->error().what());
  const auto later = p.run("later", {i32(most), i32(1)})[0];
  p.later().run_all();
  EXPECT_EQ(later->error().message(), "failed later");
  // An operation without arguments runs each time, though it fails each time.
  p.run("retried", {i32(5), i32(1)});
  EXPECT_EQ(p.notes().size(), 5u);
  // A body may return what no error reaches.
  EXPECT_EQ(
      p.run("constant", {i32(3), make_error_async_value(Error(ErrorCode::kIo, "lost"))})[0]->get<int32_t>(),
      1);
  // Or exchange the errors.
  const auto error = [](const char* text) { return make_error_async_value(Error(ErrorCode::kIo, text)); };
  const auto swapped = p.run("swapped", {i32(5), error("a"), error("b")});
  EXPECT_EQ(swapped[0]->error().message(), "b");
  EXPECT_EQ(swapped[1]->error().message(), "a");
  const auto half = p.run("one_of_two", {i32(3), i32(1)});
  EXPECT_TRUE(half[0]->is_error());
  EXPECT_EQ(half[1]->get<int32_t>(), 4);
}

TEST(ExecutorConformance, N57_AnUnusedIndirectResultOfALoopLivesUntilItIsForwarded) {
  const LeakCheck check;
  {
    ProbedProgram p(R"(
func @body(%x: i32) -> i32 { %y = async_add.i32 (%x, %x) %z = async_add.i32 (%y, %y) return %z }
func @main(%n: i32, %x: i32) { %unused = repeat @body (%n, %x) return }
)");
    p.run("main", {i32(10), i32(1)});
    int deferred = 0;
    while (p.later().run_one()) ++deferred;
    EXPECT_EQ(deferred, 20);
  }
  EXPECT_EQ(check.report(), "");
}

TEST(ExecutorConformance, N58_AValueIsUniqueForItsLastUserOnly) {
  ProbedProgram p(R"(
func @main(%x: i32) -> (bool, bool, bool) {
  %a = add.i32 (%x, %x)
  %last = probe.is_unique.i32 (%a)
  %b = add.i32 (%x, %x)
  %first = probe.is_unique.i32 (%b)
  %second = note.i32 "later" (%b)
  %argument = probe.is_unique.i32 (%x)
  return %last, %first, %argument
})");
  const auto results = p.run("main", {i32(1)});
  EXPECT_TRUE(results[0]->get<bool>());
  EXPECT_FALSE(results[1]->get<bool>()) << "another operation has it still to come";
  EXPECT_FALSE(results[2]->get<bool>()) << "the caller's";
}

// Not asked for: that the last user of a value which it had to await finds it unique. A value that is being
// completed is held by its completion until all that waited for it has run.
TEST(ExecutorConformance, N58_UniquenessLooksThroughIndirectValues) {
  ProbedProgram p(R"(
func @late(%x: i32) -> i32 { %a = async_copy.i32 (%x) %b = add.i32 (%a, %a) return %b }
func @shared(%x: i32) -> (bool, i32) { %a = call @late (%x) %u = probe.is_unique.i32 (%a) return %u, %a }
func @keep(%x: i32) -> (i32, i32) { %a = async_copy.i32 (%x) %b = note.i32 "kept" (%a) return %b, %b }
func @target(%x: i32) -> (bool, i32) { %a, %b = call @keep (%x) %u = probe.is_unique.i32 (%a) return %u, %b }
)");
  const auto shared = p.run("shared", {i32(1)}), target = p.run("target", {i32(1)});
  const auto late = p.run("late", {i32(1)})[0];
  p.later().run_all();
  EXPECT_TRUE(late->is_unique());
  EXPECT_FALSE(shared[0]->get<bool>());
  EXPECT_FALSE(target[0]->get<bool>());
  // Two indirect values of one target: each is referenced once, the target twice.
  const auto value = i32(7);
  const auto a = make_indirect_async_value(), b = make_indirect_async_value();
  a->forward_to(value);
  EXPECT_FALSE(a->is_unique());
  b->forward_to(value);
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_FALSE(a->is_unique() || b->is_unique());
}

TEST(ExecutorConformance, N58_AFunctionRunsWithArgumentsThatAreNotThereYet) {
  ProbedProgram p("func @main(%x: i32, %y: i32) -> i32 { %z = add.i32 (%x, %y) return %z }");
  const auto x = make_unconstructed_async_value<int32_t>();
  const auto y = make_indirect_async_value();
  const auto z = p.run("main", {x, y})[0];
  x.emplace(1);
  EXPECT_FALSE(z->is_available());
  y->forward_to(i32(2));
  EXPECT_EQ(z->get<int32_t>(), 3);
}

TEST(ExecutorConformance, N58_AStrictOperationWithAnErrorStillAwaitsItsOtherArgument) {
  ProbedProgram p(R"(
func @main(%bad: i32, %x: i32) -> i32 {
  %late = async_copy.i32 (%x)
  %y = probe.add.i32 "ran" (%bad, %late)
  return %y
})");
  const auto y = p.run("main", {make_error_async_value(Error(ErrorCode::kIo, "unread")), i32(1)})[0];
  EXPECT_FALSE(y->is_available());
  p.later().run_all();
  EXPECT_EQ(p.notes(), NoteList()) << "it did not run";
  EXPECT_EQ(y->error().message(), "unread");
}

TEST(ExecutorConformance, N59_ALeakOfOneIntIsReported) {
  if (!kCountsLiveObjects) GTEST_SKIP() << "nothing is counted without COPPICE_DEBUG";
  const LeakCheck check;
  AsyncValue* leaked = nullptr;
  {
    ProbedProgram p("func @main(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }");
    leaked = p.run("main", {i32(1)})[0].release();
  }
  EXPECT_EQ(check.report(), "1 async value, 1 block");
  RCReference<AsyncValue>::reclaim(leaked).reset();
  EXPECT_EQ(check.report(), "");
}

TEST(ExecutorConformance, N59_AnAllocationBeyondTheHostsCapIsAnErrorValue) {
  using Bytes = std::pmr::vector<std::byte>;
  Registry registry;
  add_builtin_operations(registry);
  registry.add_type<Bytes>("test_bytes");
  registry.add("allocate", [](int32_t bytes, Request& request) {
    return Bytes(static_cast<size_t>(bytes), &request.host().memory());
  });
  registry.add("size", [](const Bytes& bytes) { return static_cast<int32_t>(bytes.size()); });
  const auto module = LoadedModule::load(parse(R"(
func @main(%x: i32) -> (i32, test_bytes) {
  %a = allocate (%x)
  %n = size (%a)
  %b = allocate (%x)
  %m = size (%b)
  %sum = add.i32 (%n, %m)
  return %sum, %b
})",
                                               "test.graph"),
                                         registry);
  CappedMemory memory(1024);
  {
    const auto host = make_intrusive<Host>(nullptr, memory);
    const auto request = host->start_request();
    const auto run = [&](int32_t bytes) { return execute(module->function("main"), {i32(bytes)}, *request); };
    EXPECT_EQ(run(512)[0]->get<int32_t>(), 1024);
    EXPECT_EQ(run(1024)[0]->get<int32_t>(), 2048) << "the first dies before the second is made";
    EXPECT_EQ(memory.used_bytes(), 0u);
    const auto refused = run(1025);
    EXPECT_EQ(refused[1]->error().code(), ErrorCode::kOutOfMemory);
    EXPECT_STREQ(refused[1]->error().what(),
                 "test.graph:5:8: 1025 bytes wanted, and 0 of 1024 are in use [@main allocate]");
    const auto held = run(600);
    EXPECT_EQ(memory.used_bytes(), 600u);
    EXPECT_EQ(run(425)[1]->error().message(), "425 bytes wanted, and 600 of 1024 are in use");
    EXPECT_EQ(run(424)[0]->get<int32_t>(), 848);
  }
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(ExecutorConformance, N59_AnUnknownOperationIsRefusedAtLoad) {
  EXPECT_EQ(load_error("func @main(%x: i32) {\n  %y = addd.i32 (%x, %x)\n  return\n}"),
            "test.graph:2:8: @main: unknown operation addd.i32; did you mean add.i32?");
}

TEST(ExecutorConformance, N59_AnErrorNamesThePlaceOfTheOperationThatFailed) {
  ProbedProgram p(
      "func @f(%x: i32) -> i32 {\n\n    %y = fail_with.i32 3 (%x)\n  return %y\n}\n"
      "func @main(%x: i32) -> i32 {\n  %y = call @f (%x)\n  %z = add.i32 (%y, %y)\n  return %z\n}");
  const Error error = p.run("main", {i32(1)})[0]->error();
  EXPECT_STREQ(error.what(), "test.graph:3:10: failure 3 [@f fail_with.i32 -> @main add.i32]");
  EXPECT_EQ(error.location().file, "test.graph");
  EXPECT_EQ(error.location().line, 3);
  EXPECT_EQ(error.location().column, 10);
}

TEST(ExecutorConformance, AResultThatItsOperationForgetsIsAnErrorAndNoHang) {
  const LeakCheck check;
  {
    ProbedProgram p("func @main() -> i32 {\n  %x = dropped.i32\n  %y = add.i32 (%x, %x)\n  return %y\n}");
    const auto y = p.run("main")[0];
    ASSERT_TRUE(y->is_available());
    EXPECT_STREQ(y->error().what(),
                 "test.graph:2:8: an asynchronous value was dropped before it had a value "
                 "[@main dropped.i32 -> @main add.i32]");
  }
  EXPECT_EQ(check.report(), "");
}

TEST(ExecutorConformance, AResultThatDeferredWorkForgetsIsAnErrorAndNoHang) {
  const LeakCheck check;
  {
    ProbedProgram p("func @main() -> i32 {\n  %x = forgotten.i32\n  %y = add.i32 (%x, %x)\n  return %y\n}");
    const auto y = p.run("main")[0];
    EXPECT_FALSE(y->is_available());
    p.later().run_all();
    ASSERT_TRUE(y->is_available()) << p.request->describe_waiting();
    EXPECT_EQ(y->error().code(), ErrorCode::kCancelled);
    EXPECT_STREQ(y->error().what(),
                 "test.graph:2:8: an asynchronous value was dropped before it had a value "
                 "[@main forgotten.i32 -> @main add.i32]");
  }
  EXPECT_EQ(check.report(), "");
}

// Seen to hang with a plain reference in the task.
TEST(ExecutorConformance, AResultWhoseWorkAQueueDropsIsAnErrorAndNoHang) {
  ProbedProgram p(
      "func @main(%x: i32) -> i32 {\n  %y = queued_copy.i32 (%x)\n  %z = add.i32 (%y, %y)\n  return %z\n}",
      WorkQueue::create({.threads = 1}));
  std::latch is_running(1), is_over(1);
  p.host->queue()->add(0, 0, Task([&] {
                         is_running.count_down();
                         is_over.wait();
                       }));
  is_running.wait();
  const auto z = p.run("main", {i32(1)})[0];
  std::thread shutdown([&] { p.host->queue()->shutdown(WorkQueue::Shutdown::kDrop); });
  std::latch is_there(1);
  z->and_then([&] { is_there.count_down(); });
  is_there.wait();
  is_over.count_down();
  shutdown.join();
  EXPECT_EQ(z->error().code(), ErrorCode::kCancelled);
}

TEST(ExecutorConformance, AnOperationThatThrowsWithAResultUnderWayGivesItsError) {
  ProbedProgram p("func @main() -> i32 {\n  %x = throws_late.i32\n  return %x\n}");
  const auto x = p.run("main")[0];
  ASSERT_TRUE(x->is_available());
  EXPECT_STREQ(x->error().what(), "test.graph:2:8: too late [@main throws_late.i32]");
}

TEST(ExecutorConformance, AGraphThatCannotProgressSaysWhatWaitsForWhat) {
  ProbedProgram p(R"(
func @main(%given: i32) -> i32 {
  %x = never.i32
  %y = add.i32 (%x, %given)
  %z = call @inner (%y)
  return %z
}
func @inner(%y: i32) -> i32 {
  %w = mul.i32 (%y, %y)
  return %w
})");
  const auto given = make_unconstructed_async_value<int32_t>();
  const auto result = p.run("main", {given})[0];
  const std::string waiting = p.request->describe_waiting();
  EXPECT_NE(waiting.find(
                "@main add.i32 (line 4) waits for %x (never.i32, which has started), %given (an argument)\n"),
            std::string::npos)
      << waiting;
  EXPECT_NE(waiting.find("@inner mul.i32 (line 9) waits for %y (an argument)\n"), std::string::npos)
      << waiting;
  // Let it end, and nothing waits any more.
  for (auto& value : p.host->shared<Kept>().take()) value->emplace<int32_t>(1);
  given.emplace(2);
  EXPECT_EQ(result->get<int32_t>(), 9);
}

TEST(ExecutorConformance, RecursionWithoutAnEndIsAnError) {
  ProbedProgram p(R"(
func @for_ever(%x: i32) -> i32 { %y = call @other (%x) return %y }
func @other(%x: i32) -> i32 { %y = call @for_ever (%x) return %y }
func @zero(%x: i32) -> i32 { return %x }
func @count_down(%x: i32) -> i32 {
  %zero = constant.i32 0
  %minus = constant.i32 -1
  %left = less.i32 (%zero, %x)
  %y = add.i32 (%x, %minus)
  %z = if @count_down, @zero (%left, %y)
  return %z
})");
  const auto result = p.run("for_ever", {i32(1)})[0];
  EXPECT_EQ(result->error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(result->error().message(), "@for_ever: more than 500 functions call each other");
  EXPECT_EQ(p.run("count_down", {i32(400)})[0]->get<int32_t>(), -1);
  EXPECT_TRUE(p.run("count_down", {i32(1000)})[0]->is_error());
}

TEST(ExecutorConformance, OperationsThatNeedEachOtherAreRefusedAtLoad) {
  EXPECT_EQ(
      load_error(
          "func @main(%x: i32) -> i32 {\n  %y = add.i32 (%z, %x)\n  %z = mul.i32 (%y, %x)\n  return %z\n}"),
      "test.graph:2:8: @main: operations wait for each other: add.i32 (line 2) needs mul.i32 (line 3) needs "
      "add.i32 (line 2)");
}

}  // namespace
}  // namespace coppice::executor
