// Request::describe_waiting() while its functions run: what it looks at is not freed
// under it (run under TSan and ASan).
#include <gtest/gtest.h>

#include <thread>

#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

TEST(DescribeWaitingStress, IsSafeWhileOperationsStartAndEnd) {
  Program p(R"(
func @step(%x: i32) -> i32 {
  %a = twice_later.i32 (%x)
  %b = twice_later.i32 (%a)
  %c = add.i32 (%a, %b)
  %d = twice_later.i32 (%c)
  %e = add.i32 (%d, %b)
  %yes = equal.i32 (%e, %e)
  %f = if @same, @same (%yes, %e)
  return %f
}
func @same(%x: i32) -> i32 { return %x }
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @step, 4 (%n, %x) return %y }
)",
            WorkQueue::create({.threads = 2}), [](Registry& registry) {
              registry.add("twice_later.i32", [](int32_t a, Result<int32_t> twice, Request& request) {
                request.queue()->add(request.source(), 0,
                                     [a, twice = twice.allocate()]() mutable { twice.emplace(a * 2); });
              });
            });
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> is_over{false};
    std::thread watcher([&] {
      while (!is_over) p.request->describe_waiting();
    });
    const auto result = p.run("main", {i32(300), i32(0)})[0];
    wait(*result);
    is_over = true;
    watcher.join();
    EXPECT_EQ(result->get<int32_t>(), 0);
  }
  p.host->queue()->wait_idle();
  EXPECT_EQ(p.request->describe_waiting(), "");
}

}  // namespace
}  // namespace coppice::executor
