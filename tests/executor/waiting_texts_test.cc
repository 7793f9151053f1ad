// describe_waiting() of the executor's runs and of planned ones.
#include "executor/waiting_texts.h"

#include <gtest/gtest.h>

#include <latch>

#include "executor/planned/instance.h"
#include "executor/planned/planned_function.h"
#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

using Values = std::vector<RCReference<AsyncValue>>;

Values run(Program& p, const Values& arguments, bool is_planned) {
  const LoadedFunction& main = p.module->function("main");
  return is_planned ? PlannedFunction::create(main)->instance()->run(arguments, *p.request)
                    : execute(main, arguments, *p.request);
}

TEST(WaitingTexts, SayTheSameOfPlannedRuns) {
  for (const bool is_planned : {false, true}) {
    Program p(
        "func @main(%a: i32, %b: i32) -> i32 {\n  %x = async_add.i32 (%b, %b)\n"
        "  %y = add.i32 (%a, %x)\n  return %y\n}");
    auto a = make_promise<int32_t>();
    const auto y = run(p, {a.value(), i32(1)}, is_planned);
    EXPECT_EQ(p.request->describe_waiting(),
              "@main add.i32 (line 3) waits for %a (an argument), %x (async_add.i32, which has started)\n");
    a.emplace(1);
    EXPECT_EQ(p.request->describe_waiting(),
              "@main add.i32 (line 3) waits for %x (async_add.i32, which has started)\n");
    p.later().run_all();
    EXPECT_EQ(p.request->describe_waiting(), "");
    EXPECT_EQ(y[0]->get<int32_t>(), 3);
  }
}

TEST(WaitingTexts, OfLoopsAndChoicesAreThoseOfPlannedRuns) {
  for (const bool is_planned : {false, true}) {
    Program p(
        "func @same(%x: i32) -> i32 { return %x }\n"
        "func @later(%x: i32) -> i32 { %y = async_add.i32 (%x, %x) return %y }\n"
        "func @main(%c: bool, %n: i32) -> i32 {\n  %x = if @same, @same (%c, %n)\n"
        "  %y = repeat @later (%x, %n)\n  return %y\n}");
    auto c = make_promise<bool>();
    auto n = make_promise<int32_t>();
    const auto y = run(p, {c.value(), n.value()}, is_planned);
    const auto says = [&](const char* line) {
      EXPECT_NE(p.request->describe_waiting().find(line), std::string::npos)
          << is_planned << ": " << p.request->describe_waiting();
    };
    says("a choice between @same and 1 more waits for its condition\n");
    c.emplace(true);
    says("repeat @later waits for its count after 0 iterations\n");
    n.emplace(2);
    says("repeat @later waits for the values that it carries after 1 iterations\n");
    p.later().run_all();
    EXPECT_EQ(p.request->describe_waiting(), "");
    EXPECT_EQ(y[0]->get<int32_t>(), 8);
  }
}

// The queue's only thread is held, so that what goes on when the arguments are there has not begun.
TEST(WaitingTexts, AnOperationWhoseArgumentsHaveJustComeIsAboutToRun) {
  for (const bool is_planned : {false, true}) {
    Program p("func @main(%a: i32, %b: i32) -> i32 {\n  %x = add.i32 (%a, %b)\n  return %x\n}",
              WorkQueue::create({.threads = 1}));
    auto a = make_promise<int32_t>(), b = make_promise<int32_t>();
    const auto x = run(p, {a.value(), b.value()}, is_planned);
    std::latch is_held(1), may_go_on(1);
    p.host->queue()->add(1, 0, [&] {
      is_held.count_down();
      may_go_on.wait();
    });
    is_held.wait();
    a.emplace(1), b.emplace(2);
    EXPECT_EQ(p.request->describe_waiting(), "@main add.i32 (line 2) is about to run\n");
    may_go_on.count_down();
    wait(*x[0]);
  }
}

}  // namespace
}  // namespace coppice::executor
