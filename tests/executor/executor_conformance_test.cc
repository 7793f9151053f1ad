// An executor of async functions is expected to do this, by the numbers of the project's conformance list:
// basics (31 to 42), asynchronous values (43 to 46). Without threads: "later" is when the test says so.
#include <gtest/gtest.h>

#include <thread>

#include "core/live_objects.h"
#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

using NoteList = std::vector<std::string>;

std::string message_of(const RCReference<AsyncValue>& value) {
  if (!value->is_available()) return "not available";
  return value->is_error() ? value->error().what() : "no error";
}

TEST(ExecutorConformance, N31_ConstantsArithmeticAndSeveralResults) {
  ProbedProgram p(R"(
func @main() -> (i32, i32, f64, i64, bool, string) {
  %a = constant.i32 17
  %b = constant.i32 5
  %q, %r = divmod.i32 (%a, %b)
  %x = constant.f64 0.5
  %y = mul.f64 (%x, %x)
  %big = constant.i64 9223372036854775807
  %wrapped = add.i64 (%big, %big)
  %less = less.i32 (%b, %a)
  %text = constant.string "a\tb"
  return %q, %r, %y, %wrapped, %less, %text
})");
  const auto results = p.run("main");
  EXPECT_EQ(results[0]->get<int32_t>(), 3);
  EXPECT_EQ(results[1]->get<int32_t>(), 2);
  EXPECT_EQ(results[2]->get<double>(), 0.25);
  EXPECT_EQ(results[3]->get<int64_t>(), -2);
  EXPECT_TRUE(results[4]->get<bool>());
  EXPECT_EQ(results[5]->get<std::string>(), "a\tb");
}

TEST(ExecutorConformance, N32_NestedCalls) {
  ProbedProgram p(R"(
func @twice(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }
func @four(%x: i32) -> i32 { %y = call @twice (%x) %z = call @twice (%y) return %z }
func @main(%x: i32) -> (i32, i32) { %y = call @four (%x) %z = call @four (%y) return %z, %y }
)");
  const auto results = p.run("main", {i32(3)});
  EXPECT_EQ(results[0]->get<int32_t>(), 48);
  EXPECT_EQ(results[1]->get<int32_t>(), 12);
}

TEST(ExecutorConformance, N33_DivisionByZeroIsAnErrorResult) {
  ProbedProgram p("func @main(%x: i32, %y: i32) -> i32 {\n  %z = div.i32 (%x, %y)\n  return %z\n}");
  EXPECT_EQ(p.run("main", {i32(7), i32(2)})[0]->get<int32_t>(), 3);
  const auto failed = p.run("main", {i32(7), i32(0)})[0];
  EXPECT_EQ(message_of(failed), "test.graph:2:8: 7 divided by zero [@main div.i32]");
  EXPECT_EQ(failed->error().code(), ErrorCode::kNumeric);
  // The one overflow of a division is defined: two's complement.
  EXPECT_EQ(p.run("main", {i32(INT32_MIN), i32(-1)})[0]->get<int32_t>(), INT32_MIN);
}

TEST(ExecutorConformance, N34_AFailingOperationGivesItsError) {
  ProbedProgram p("func @main(%x: i32) -> i32 {\n  %y = fail.i32 (%x)\n  return %y\n}");
  EXPECT_EQ(message_of(p.run("main", {i32(1)})[0]), "test.graph:2:8: failed [@main fail.i32]");
}

TEST(ExecutorConformance, N35_AnAsynchronousErrorDirectAndThroughAnIndirectValue) {
  ProbedProgram p(R"(
func @direct(%x: i32) -> i32 { %y = async_fail.i32 (%x) return %y }
func @indirect(%x: i32) -> i32 { %y = async_add.i32 (%x, %x) %z = async_fail.i32 (%y) return %z }
func @success(%x: i32) -> i32 { %y = async_add.i32 (%x, %x) %z = async_add.i32 (%y, %y) return %z }
func @used(%x: i32) -> i32 { %y = call @indirect (%x) %z = add.i32 (%y, %x) return %z }
)");
  const auto direct = p.run("direct", {i32(1)})[0], indirect = p.run("indirect", {i32(1)})[0],
             success = p.run("success", {i32(1)})[0], used = p.run("used", {i32(1)})[0];
  EXPECT_FALSE(direct->is_indirect());
  EXPECT_TRUE(indirect->is_indirect());
  EXPECT_FALSE(indirect->is_available());
  p.later().run_all();
  EXPECT_EQ(message_of(direct), "test.graph:2:37: failed later [@direct async_fail.i32]");
  EXPECT_EQ(message_of(indirect), "test.graph:3:67: failed later [@indirect async_fail.i32]");
  EXPECT_EQ(success->get<int32_t>(), 4);
  EXPECT_EQ(message_of(used), "test.graph:3:67: failed later [@indirect async_fail.i32 -> @used add.i32]");
}

TEST(ExecutorConformance, N36_AnUnusedErrorIsIgnored) {
  ProbedProgram p(R"(
func @main(%x: i32) -> i32 {
  %bad = fail.i32 (%x)
  %bad_later = async_fail.i32 (%x)
  %worse = add.i32 (%bad, %bad_later)
  %good = add.i32 (%x, %x)
  return %good
})");
  const LeakCheck check;
  EXPECT_EQ(p.run("main", {i32(4)})[0]->get<int32_t>(), 8);
  p.later().run_all();
  EXPECT_EQ(check.report(), "");
}

TEST(ExecutorConformance, N37_PartialFailureSkipsOnlyItsUsers) {
  ProbedProgram p(R"(
func @main(%x: i32) -> (i32, i32, i32) {
  %good, %bad = partial.i32 (%x)
  %a = note.i32 "good" (%good)
  %b = note.i32 "bad" (%bad)
  %c = note.i32 "both" (%b)
  return %a, %b, %c
})");
  const auto results = p.run("main", {i32(6)});
  EXPECT_EQ(p.notes(), NoteList{"good 6"});
  EXPECT_EQ(results[0]->get<int32_t>(), 6);
  EXPECT_EQ(results[1]->error().message(), "only one");
  EXPECT_EQ(results[2]->error().message(), "only one");
}

TEST(ExecutorConformance, N38_CancellingSkipsTheRest) {
  ProbedProgram p(R"(
func @main(%x: i32) -> (i32, i32, i32) {
  %a = note.i32 "before" (%x)
  %b = cancel (%a)
  %c = note.i32 "after" (%b)
  %d = call @callee (%x, %b)
  return %a, %c, %d
}
func @callee(%x: i32, %order: i32) -> i32 {
  %y = note.i32 "in a call" (%order)
  return %y
})");
  const auto results = p.run("main", {i32(1)});
  EXPECT_EQ(p.notes(), NoteList{"before 1"});
  EXPECT_EQ(results[0]->get<int32_t>(), 1);
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(results[i]->error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(results[i]->error().message(), "cancelled");
  }
}

TEST(ExecutorConformance, N39_MemoryGoesInTheOperationThatReleasesIt) {
  ProbedProgram p(R"(
func @release() {
  %b = buffer.new 1
  buffer.release (%b)
  return
})");
  p.run("release");
  EXPECT_EQ(p.notes(), (NoteList{"make 1", "release", "destroy 1", "released"}));
}

TEST(ExecutorConformance, N39_AResourceWhoseReleaseIsSkippedIsDestroyedAllTheSame) {
  ProbedProgram p(R"(
func @main() {
  %b = buffer.new 2
  %x = constant.i32 1
  %y = async_copy.i32 (%x)
  release_after (%b, %y)
  return
})");
  p.run("main");
  EXPECT_EQ(p.notes(), NoteList{"make 2"});
  p.request->cancel();
  p.later().run_all();
  EXPECT_EQ(p.notes(), NoteList{"destroy 2"});
}

TEST(ExecutorConformance, N40_ASharedContextIsMadeOnceForAllRequests) {
  struct Context {
    std::atomic<int> uses{0};
  };
  ProbedProgram p("func @main() { return }");
  Context& context = p.host->shared<Context>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { ++p.host->shared<Context>().uses; });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(context.uses, 8);
  EXPECT_EQ(&p.host->start_request()->host().shared<Context>(), &context);
  EXPECT_NE(&make_intrusive<Host>()->shared<Context>(), &context) << "another host has its own";
}

TEST(ExecutorConformance, N41_AValueCanBeReturnedSeveralTimes) {
  ProbedProgram p(R"(
func @main(%one: i32) -> (i32, i32, i32, i32) {
  %two = add.i32 (%one, %one)
  return %one, %one, %one, %two
}
func @later(%one: i32) -> (i32, i32) {
  %a = async_copy.i32 (%one)
  %b = async_copy.i32 (%a)
  return %b, %b
})");
  const auto results = p.run("main", {i32(1)});
  EXPECT_EQ(results[0].get(), results[1].get());
  EXPECT_EQ(results[0].get(), results[2].get());
  EXPECT_EQ(results[0].use_count(), 3u);
  EXPECT_EQ(results[3]->get<int32_t>(), 2);
  auto later = p.run("later", {i32(1)});
  EXPECT_EQ(later[0].get(), later[1].get()) << "one indirect value for both";
  EXPECT_EQ(later[0].use_count(), 3u);
  later[0].reset();
  p.later().run_all();
  EXPECT_EQ(later[1].use_count(), 1u);
  EXPECT_EQ(later[1]->get<int32_t>(), 1);
}

TEST(ExecutorConformance, N42_AnArgumentReturnedIsTheSameValue) {
  ProbedProgram p("func @main(%x: i32) -> i32 { return %x }");
  const auto x = i32(1);
  EXPECT_EQ(p.run("main", {x})[0].get(), x.get());
  const RCReference<AsyncValue> pending = make_unconstructed_async_value<int32_t>();
  EXPECT_EQ(p.run("main", {pending})[0].get(), pending.get()) << "available or not";
}

TEST(ExecutorConformance, N43_ResultsOfAnAsynchronousBodyComeLater) {
  ProbedProgram p(R"(
func @body(%x: i32) -> i32 { %y = async_add.i32 (%x, %x) %z = note.i32 "body" (%y) return %z }
func @main(%x: i32) -> i32 {
  %now = note.i32 "before" (%x)
  %y = call @body (%x)
  %z = note.i32 "after" (%y)
  return %z
})");
  const auto results = p.run("main", {i32(21)});
  EXPECT_EQ(p.notes(), NoteList{"before 21"});
  p.later().run_all();
  EXPECT_EQ(p.notes(), (NoteList{"body 42", "after 42"}));
  EXPECT_EQ(results[0]->get<int32_t>(), 42);
}

TEST(ExecutorConformance, N44_ARepeatWithAnAsynchronousBodyKeepsItsOrder) {
  ProbedProgram p(R"(
func @body(%x: i32) -> i32 {
  %a = note.i32 "starts" (%x)
  %b = async_copy.i32 (%a)
  %c = note.i32 "ends" (%b)
  %one = constant.i32 1
  %d = add.i32 (%c, %one)
  return %d
}
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @body (%n, %x) return %y }
)");
  const auto results = p.run("main", {i32(2), i32(10)});
  p.later().run_all();
  EXPECT_EQ(p.notes(), (NoteList{"starts 10", "ends 10", "starts 11", "ends 11"}));
  EXPECT_EQ(results[0]->get<int32_t>(), 12);
}

TEST(ExecutorConformance,
     N45_AnUnavailableValueReturnedFromACallBecomesIndirectOnlyWhenItsProducerHasNotRun) {
  ProbedProgram p(R"(
func @started(%x: i32) -> i32 { %y = async_copy.i32 (%x) return %y }
func @waiting(%x: i32) -> i32 { %y = async_copy.i32 (%x) %z = add.i32 (%y, %y) return %z }
func @main(%x: i32) -> (i32, i32) {
  %a = call @started (%x)
  %b = call @waiting (%x)
  return %a, %b
})");
  const auto results = p.run("main", {i32(4)});
  EXPECT_FALSE(results[0]->is_available() || results[0]->is_indirect());
  EXPECT_TRUE(!results[1]->is_available() && results[1]->is_indirect());
  p.later().run_all();
  EXPECT_EQ(results[0]->get<int32_t>(), 4);
  EXPECT_EQ(results[1]->get<int32_t>(), 8);
}

TEST(ExecutorConformance, N46_ACopyWithDelay) {
  ProbedProgram p(R"(
func @main(%x: i32) -> i32 { %a = async_copy.i32 (%x) %b = async_copy_ref.i32 (%a) return %b }
)");
  const auto x = i32(5);
  const auto y = p.run("main", {x})[0];
  p.later().run_all();
  EXPECT_EQ(y->get<int32_t>(), 5);
  EXPECT_NE(&y->get<int32_t>(), &x->get<int32_t>());
}

}  // namespace
}  // namespace coppice::executor
