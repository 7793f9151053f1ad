// Where errors arose, whenever they come: of values that operations return before these are there, and of
// choices whose index comes later. The executor and planned functions say the same.
#include <gtest/gtest.h>

#include "executor/enqueue_work.h"
#include "executor/planned/instance.h"
#include "executor/planned/planned_function.h"
#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

// read.work (a)    an error of work on the host's threads       read.now (a)       an error that is returned
// read.later (a)   an error of a promise, later                 read.placed (a)    an error later, with a place
// read.forgotten (a)   a promise that is dropped later
void add_reads(Registry& registry) {
  registry.add("read.work", [](int32_t, Request& request) {
    return enqueue_work(request, []() -> int32_t { throw Error(ErrorCode::kIo, "read failed"); });
  });
  registry.add("read.now", [](int32_t, Result<int32_t> result) {
    result.set_error(Error(ErrorCode::kIo, "read failed"));
  });
  registry.add("read.later", [](int32_t, Result<int32_t> result, Request& request) {
    request.host().shared<Later>().add(
        [result = result.allocate()]() mutable { result.set_error(Error(ErrorCode::kIo, "read failed")); });
  });
  registry.add("read.placed", [](int32_t, Result<int32_t> result, Request& request) {
    request.host().shared<Later>().add([result = result.allocate()]() mutable {
      result.set_error(Error(ErrorCode::kIo, "read failed", {"data.txt", 7, 1}));
    });
  });
  registry.add("read.forgotten", [](int32_t, Result<int32_t> result, Request& request) {
    request.host().shared<Later>().add([result = result.allocate()] {});
  });
  registry.add("done", [](After event) { return event.done(); });
}

// Runs @main by the executor and as a planned function.
std::vector<std::string> errors_of(const std::string& text, IntrusivePtr<WorkQueue> queue,
                                   const std::vector<RCReference<AsyncValue>>& arguments) {
  std::vector<std::string> errors;
  for (const bool is_planned : {false, true}) {
    Program p(text, queue, &add_reads);
    const LoadedFunction& main = p.module->function("main");
    const auto result = is_planned ? PlannedFunction::create(main)->instance()->run(arguments, *p.request)[0]
                                   : execute(main, arguments, *p.request)[0];
    while (!result->is_available()) p.later().run_one();
    errors.emplace_back(result->error().what());
  }
  return errors;
}

TEST(OperationErrors, AValueThatIsReturnedBeforeItIsThereSaysWhereItsErrorArose) {
  struct Case {
    const char *main, *rest;  // behind the place and message; and of the path
  };
  const Case cases[] = {
      {"func @main(%n: i32) -> i32 {\n  %x = call @read (%n)\n  return %x\n}", ""},
      {"func @main(%n: i32) -> i32 {\n  %x = call @read (%n)\n  %y = add.i32 (%x, %n)\n  return %y\n}",
       " -> @main add.i32"},
      {"func @main(%n: i32) -> i32 {\n  %x = repeat @read (%n, %n)\n  return %x\n}", ""},
  };
  for (const bool has_queue : {false, true}) {
    for (const std::string operation :
         {"read.work", "read.now", "read.later", "read.placed", "read.forgotten"}) {
      for (const Case& c : cases) {
        const bool is_placed = operation == "read.placed", is_forgotten = operation == "read.forgotten";
        const std::string expected = fmt::format(
            "{}: {} [@read {}{}]", is_placed ? "data.txt:7:1" : "test.graph:2:8",
            is_forgotten ? "an asynchronous value was dropped before it had a value" : "read failed",
            operation, c.rest);
        const std::string text =
            "func @read(%n: i32) -> i32 {\n  %x = " + operation + " (%n)\n  return %x\n}\n";
        for (const std::string& error :
             errors_of(text + c.main, has_queue ? WorkQueue::create({.threads = 1}) : nullptr, {i32(1)}))
          EXPECT_EQ(error, expected);
      }
    }
  }
}

TEST(OperationErrors, AnErrorNamesItsOperationAlsoInsideOfFunctionsThatGetTheValue) {
  const std::string text =
      "func @twice(%x: i32) -> i32 {\n  %y = add.i32 (%x, %x)\n  return %y\n}\n"
      "func @main(%n: i32) -> i32 {\n  %x = read.later (%n)\n  %y = call @twice (%x)\n  return %y\n}";
  for (const std::string& error : errors_of(text, nullptr, {i32(1)}))
    EXPECT_EQ(error, "test.graph:6:8: read failed [@main read.later -> @twice add.i32]");
}

// It is a matter of time whether the stream has failed by now (docs/executor.md).
TEST(OperationErrors, AnEventsErrorStaysAsItIsSoonAndLate) {
  for (const bool is_late : {false, true}) {
    auto promise = make_promise<Chain>();
    const RCReference<AsyncValue> event = promise.value();
    const Error lost(ErrorCode::kUnavailable, "device lost");
    if (!is_late) promise.set_error(lost);
    Program p("func @main(%e: event) -> chain {\n  %c = done (%e)\n  return %c\n}", nullptr, &add_reads);
    const auto c = p.run("main", {event})[0];
    if (is_late) promise.set_error(lost);
    EXPECT_STREQ(c->error().what(), "device lost") << is_late;
  }
}

TEST(OperationErrors, AChoiceWhoseIndexComesLaterSaysWhereItFailed) {
  const std::string text =
      "func @b(%x: i32) -> i32 {\n  return %x\n}\n"
      "func @main(%i: i32) -> i32 {\n  %x = case @b, @b (%i, %i)\n  return %x\n}";
  const char* const expected = "test.graph:5:8: case 7 of 2 functions [@main case]";
  for (const std::string& error : errors_of(text, nullptr, {i32(7)})) EXPECT_EQ(error, expected);
  for (const bool has_queue : {false, true}) {
    for (const bool is_planned : {false, true}) {
      Program p(text, has_queue ? WorkQueue::create({.threads = 1}) : nullptr);
      auto index = make_promise<int32_t>();
      const std::vector<RCReference<AsyncValue>> arguments{index.value()};
      const LoadedFunction& main = p.module->function("main");
      const auto result = is_planned
                              ? PlannedFunction::create(main)->instance()->run(arguments, *p.request)[0]
                              : execute(main, arguments, *p.request)[0];
      index.emplace(7);
      wait(*result);
      EXPECT_STREQ(result->error().what(), expected) << has_queue << is_planned;
    }
  }
}

// An error that comes in as an argument, and has passed through functions, arose in none of them.
TEST(OperationErrors, AnArgumentsErrorThatPassesThroughFunctionsIsNotNamedByThem) {
  const std::string functions =
      "func @same(%x: i32) -> i32 {\n  return %x\n}\n"
      "func @main(%x: i32) -> i32 {\n  %two = constant.i32 2\n  %one = constant.i32 1\n"
      "  %less = less.i32 (%one, %two)\n";
  const char* const passes[] = {"%y = call @same (%x)", "%y = repeat @same (%two, %x)",
                                "%y = if @same, @same (%less, %x)", "%y = case @same, @same (%one, %x)"};
  for (const char* const pass : passes) {
    for (const bool is_late : {false, true}) {
      for (const bool is_planned : {false, true}) {
        SCOPED_TRACE(testing::Message() << pass << is_late << is_planned);
        Program p(functions + pass + "\n  %z = add.i32 (%y, %y)\n  return %z\n}");
        auto promise = make_promise<int32_t>();
        const std::vector<RCReference<AsyncValue>> arguments{promise.value()};
        const Error lost(ErrorCode::kIo, "no input");
        if (!is_late) promise.set_error(lost);
        const LoadedFunction& main = p.module->function("main");
        const auto result = is_planned
                                ? PlannedFunction::create(main)->instance()->run(arguments, *p.request)[0]
                                : execute(main, arguments, *p.request)[0];
        if (is_late) promise.set_error(lost);
        ASSERT_TRUE(result->is_error());
        EXPECT_STREQ(result->error().what(), "no input [@main add.i32]");
      }
    }
  }
}

}  // namespace
}  // namespace coppice::executor
