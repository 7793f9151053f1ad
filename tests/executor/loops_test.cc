// When loops whose values are all errors end early, and when they must not.
#include <gtest/gtest.h>

#include <deque>

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

// The iteration after the first that has got nothing but errors is the last.
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
  EXPECT_EQ(num_iterations("@fail"), 2);
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

}  // namespace
}  // namespace coppice::executor
