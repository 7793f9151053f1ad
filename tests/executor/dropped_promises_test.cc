// Promises that are dropped: by operations, at once and later, and by the caller of a function.
#include <gtest/gtest.h>

#include "core/live_objects.h"
#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

// dropped.chain ()      its producer forgets it at once
void add_dropped_chain(Registry& registry) {
  registry.add("dropped.chain", [](Result<Chain> result) { (void)result.allocate(); });
}

TEST(DroppedPromises, AnErrorDoesNotTellWhetherItWasSoonOrLate) {
  const auto error_of = [](const char* operation) {
    ProbedProgram p(fmt::format("func @main() -> i32 {{\n  %x = {}\n  %y = add.i32 (%x, %x)\n  return %y\n}}",
                                operation));
    const auto y = p.run("main")[0];
    p.later().run_all();
    return y->error();
  };
  const Error soon = error_of("dropped.i32"), late = error_of("forgotten.i32");
  EXPECT_EQ(soon.code(), ErrorCode::kCancelled);
  EXPECT_EQ(soon.code(), late.code());
  EXPECT_EQ(soon.message(), late.message());
  EXPECT_EQ(soon.location().line, late.location().line);
  EXPECT_EQ(soon.path().size(), late.path().size());
}

// parallel_for waits for its arguments, and yet its error may be that of another operation.
TEST(DroppedPromises, TheErrorNamesTheOperationInsideAParallelFor) {
  Program p(
      "func @body(%b: i32, %e: i32) -> chain {\n  %c = dropped.chain\n  return %c\n}\n"
      "func @main(%b: i32, %e: i32) -> chain {\n  %c = parallel_for @body, 16 (%b, %e)\n  return %c\n}",
      nullptr, &add_dropped_chain);
  const auto c = p.run("main", {i32(0), i32(1)})[0];
  EXPECT_EQ(c->error().code(), ErrorCode::kCancelled);
  EXPECT_STREQ(
      c->error().what(),
      "test.graph:2:8: an asynchronous value was dropped before it had a value [@body dropped.chain]");
}

TEST(DroppedPromises, AnArgumentThatItsCallerDropsIsAnErrorAndNoHang) {
  const LeakCheck check;
  {
    Program p("func @main(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }");
    auto typed = make_promise<int32_t>();
    Promise<int32_t> indirect(make_indirect_async_value<int32_t>());
    for (Promise<int32_t>* const promise : {&typed, &indirect}) {
      const auto y = p.run("main", {promise->value()})[0];
      EXPECT_FALSE(y->is_available());
      *promise = Promise<int32_t>();
      ASSERT_TRUE(y->is_error()) << p.request->describe_waiting();
      EXPECT_EQ(y->error().code(), ErrorCode::kCancelled);
    }
  }
  EXPECT_EQ(check.report(), "");
}

}  // namespace
}  // namespace coppice::executor
