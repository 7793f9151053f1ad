// When loops whose values are all errors end early, and when they must not.
#include <gtest/gtest.h>

#include <deque>

#include "executor/error_rounds.h"
#include "executor/planned/instance.h"
#include "executor/planned/planned_function.h"
#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

// Runs its tasks when the test says so, so that what they complete is always late.
class LateQueue final : public WorkQueue {
 public:
  bool add(uint64_t, uint32_t, Task task) override {
    tasks_.push_back(std::move(task));
    return true;
  }
  bool add_blocking(Task task) override {
    ++num_blocking_;
    return add(0, 0, std::move(task));
  }
  Timer add_at(Clock::time_point, Task) override { return {}; }
  bool remove_timer(const Timer&) override { return false; }
  int threads() const override { return 1; }
  bool is_short_of_work() const override { return false; }
  bool is_compute_thread() const override { return false; }
  void wait_idle() override {
    while (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void shutdown(Shutdown) override { tasks_.clear(); }
  int num_blocking() const { return num_blocking_; }  // tasks that were added

 private:
  std::deque<Task> tasks_;
  int num_blocking_ = 0;
};

// attempt.i32 ()          the number of the attempt; the first two fail, with the same message
// fail_blocking.i32 (a)   an error, by a thread that may block
void add_attempts(Registry& registry) {
  struct Attempts {
    int32_t n = 0;
  };
  registry.add("attempt.i32", [](Request& request) {
    const int32_t n = ++request.host().shared<Attempts>().n;
    if (n <= 2) throw Error(ErrorCode::kIo, "not yet");
    return n;
  });
  registry.add("fail_blocking.i32", [](int32_t) -> int32_t { throw Error(ErrorCode::kIo, "unread"); },
               {.run = Run::kBlocking});
}

TEST(Loops, ABodyThatDoesNotDependOnTheErrorsRunsAsOftenAsItIsTold) {
  for (const char* body : {"func @try(%x: i32) -> i32 { %y = attempt.i32 return %y }",
                           "func @try(%x: i32) -> i32 { %y = call @once (%x) return %y }",
                           "func @try(%x: i32) -> i32 { %y = call @try_it () return %y }"}) {
    Program p(std::string(body) + R"(
func @once(%x: i32) -> i32 { %y = attempt.i32 return %y }
func @try_it() -> i32 { %y = attempt.i32 return %y }
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @try (%n, %x) return %y })",
              nullptr, &add_attempts);
    const auto y = p.run("main", {i32(5), i32(0)})[0];
    ASSERT_TRUE(y->is_concrete()) << body;
    EXPECT_EQ(y->get<int32_t>(), 5) << body;
  }
}

// After some iterations that get nothing but errors the path grows no more, and the rest is left out.
// A loop that had to wait looks at the same round again: that was a division by zero.
TEST(ErrorRounds, MayBeAskedTwiceOfARound) {
  ErrorRounds rounds;
  const std::vector<RCReference<AsyncValue>> values{make_error_async_value(Error(ErrorCode::kNumeric, "a"))};
  EXPECT_EQ(rounds.skip(values, 3, 10), 3);
  EXPECT_EQ(rounds.skip(values, 3, 10), 3);
  EXPECT_EQ(rounds.skip(values, 4, 10), 10);
}

TEST(Loops, ErrorsThatComeLaterEndALoopToo) {
  const auto num_iterations = [](const char* body) {
    const auto queue = make_intrusive<LateQueue>();
    Program p(fmt::format(R"(
func @fail(%x: i32) -> i32 {{ %y = fail_blocking.i32 (%x) return %y }}
func @main(%n: i32, %x: i32) -> i32 {{ %y = repeat {} (%n, %x) return %y }})",
                          body),
              queue, &add_attempts);
    const auto y = p.run("main", {i32(1000), i32(0)})[0];
    queue->wait_idle();
    EXPECT_EQ(y->error().message(), "unread");
    return queue->num_blocking();
  };
  EXPECT_LT(num_iterations("@fail"), 50);
}

// Values that are the same after a whole window need not be the same after one iteration.
TEST(Loops, ErrorsThatABodyExchangesLaterEndAsTheCountSays) {
  for (const char* body : {"@swap", "@swap, 2", "@swap, 3"}) {
    const auto queue = make_intrusive<LateQueue>();
    Program p(fmt::format(R"(
func @swap(%x: i32, %y: i32) -> (i32, i32) {{
  %a = fail_blocking.i32 (%x)
  %b = fail_blocking.i32 (%y)
  return %b, %a
}}
func @main(%n: i32, %x: i32, %y: i32) -> (i32, i32) {{
  %a, %b = repeat {} (%n, %x, %y)
  return %a, %b
}})",
                          body),
              queue, &add_attempts);
    const auto error = [](const char* text) { return make_error_async_value(Error(ErrorCode::kIo, text)); };
    const auto swapped = p.run("main", {i32(7), error("a"), error("b")});
    queue->wait_idle();
    EXPECT_EQ(swapped[0]->error().message(), "b") << body;
    EXPECT_EQ(swapped[1]->error().message(), "a") << body;
  }
}

std::string text_of(const AsyncValue& value) {
  return fmt::format("{}: {}", name_of(value.error().code()), value.error().what());
}

// Errors of one text may have another place, code or path. Break: compare messages alone.
TEST(Loops, ErrorsThatABodyExchangesEndAsAllItsRoundsWouldGiveThem) {
  Program p(R"(
func @swap(%x: i32, %y: i32) -> (i32, i32) { %z = add.i32 (%x, %x) return %y, %x }
func @turn(%x: i32, %y: i32, %z: i32) -> (i32, i32, i32) { %s = add.i32 (%x, %x) return %y, %z, %x }
func @two(%n: i32, %x: i32, %y: i32, %z: i32) -> (i32, i32) { %a, %b = repeat @swap (%n, %x, %y) return %a, %b }
func @ahead(%n: i32, %x: i32, %y: i32, %z: i32) -> (i32, i32) { %a, %b = repeat @swap, 3 (%n, %x, %y) return %a, %b }
func @three(%n: i32, %x: i32, %y: i32, %z: i32) -> (i32, i32, i32) {
  %a, %b, %c = repeat @turn (%n, %x, %y, %z)
  return %a, %b, %c
})");
  const Error first(ErrorCode::kIo, "lost", {"g", 3, 1});
  const Error others[] = {Error(ErrorCode::kIo, "lost", {"g", 7, 1}),
                          Error(ErrorCode::kIo, "lost", {"h", 3, 1}),
                          Error(ErrorCode::kNumeric, "lost", {"g", 3, 1}), first.with_step("one")};
  for (const Error& other : others) {
    const RCReference<AsyncValue> values[] = {make_error_async_value(first), make_error_async_value(other),
                                              make_error_async_value(Error(ErrorCode::kIo, "more"))};
    for (const char* function : {"two", "ahead", "three"}) {
      const LoadedFunction& f = p.module->function(function);
      const size_t n = f.returns.size();
      for (const int32_t count : {0, 1, 2, 3, 4, 5, 30, 31, 32, 33, 34, 2'000'000'001}) {
        const std::vector<RCReference<AsyncValue>> arguments{i32(count), values[0], values[1], values[2]};
        const auto executed = execute(f, arguments, *p.request);
        const auto planned = PlannedFunction::create(f)->instance()->run(arguments, *p.request);
        for (size_t i = 0; i < n; ++i) {
          const std::string expected = text_of(*values[(i + static_cast<size_t>(count)) % n]);
          EXPECT_EQ(text_of(*executed[i]), expected) << function << " " << count;
          EXPECT_EQ(text_of(*planned[i]), expected) << function << " " << count;
        }
      }
    }
  }
}

// The path grows while it can, as if every round had run, in the executor and in a planned function.
TEST(Loops, AnErrorsPathIsThatOfAllRounds) {
  Program p(R"(
func @swap(%x: i32, %y: i32) -> (i32, i32) {
  %a = mul.i32 (%x, %x)
  %b = add.i32 (%y, %y)
  %c = add.i32 (%b, %b)
  return %c, %a
}
func @once(%x: i32, %y: i32) -> (i32, i32) { %a, %b = call @swap (%x, %y) return %a, %b }
func @main(%n: i32, %x: i32, %y: i32) -> (i32, i32) { %a, %b = repeat @swap (%n, %x, %y) return %a, %b })");
  const auto error = [](const char* text) { return make_error_async_value(Error(ErrorCode::kIo, text)); };
  std::vector<RCReference<AsyncValue>> rounds{error("lost"), error("lost")};
  const auto first = rounds;
  const LoadedFunction& main = p.module->function("main");
  for (int32_t count = 1; count < 80; ++count) {
    rounds = execute(p.module->function("once"), rounds, *p.request);
    const std::vector<RCReference<AsyncValue>> arguments{i32(count), first[0], first[1]};
    const auto executed = execute(main, arguments, *p.request);
    const auto planned = PlannedFunction::create(main)->instance()->run(arguments, *p.request);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(text_of(*executed[i]), text_of(*rounds[i])) << count;
      EXPECT_EQ(text_of(*planned[i]), text_of(*rounds[i])) << count;
    }
  }
}

}  // namespace
}  // namespace coppice::executor
