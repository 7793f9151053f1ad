// core/late_errors.h: errors that are told where they arose, on values that others complete.
#include "core/late_errors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "core/async_value.h"
#include "core/live_objects.h"

namespace coppice {
namespace {

auto adds(const char* step) {
  return [step](const Error& error) { return error.with_step(step); };
}

TEST(LateErrors, NobodySeesTheErrorThatTheProducerGave) {
  const LeakCheck check;
  {
    auto value = make_promise<int>();
    const auto result = value.value();
    std::string early, late;
    result.and_then([&] { early = result.error().what(); });
    EXPECT_TRUE(amend_error(*result.get_async_value(), adds("here")));
    result.and_then([&] { late = result.error().what(); });
    value.set_error(Error(ErrorCode::kIo, "lost"));
    EXPECT_EQ(early, "lost [here]");
    EXPECT_EQ(late, "lost [here]");
  }
  EXPECT_EQ(check.report(), "");
}

TEST(LateErrors, OfSeveralTheFirstDoesIt) {
  auto value = make_promise<int>();
  const auto result = value.value();
  for (const char* step : {"first", "second"})
    EXPECT_TRUE(amend_error(*result.get_async_value(), adds(step)));
  value.set_error(Error(ErrorCode::kIo, "lost"));
  EXPECT_STREQ(result.error().what(), "lost [first]");
}

TEST(LateErrors, AValueThatIsAvailableStaysAsItIs) {
  const LeakCheck check;
  {
    const auto held = std::make_shared<int>();
    const auto error = make_error_async_value(Error(ErrorCode::kIo, "lost"));
    EXPECT_FALSE(amend_error(*error, [held](const Error& e) { return e.with_step("here"); }));
    EXPECT_STREQ(error->error().what(), "lost");
    EXPECT_EQ(held.use_count(), 1);
    auto value = make_promise<int>();
    const auto result = value.value();
    EXPECT_TRUE(amend_error(*result.get_async_value(), [held](const Error& e) { return e; }));
    EXPECT_EQ(held.use_count(), 2);
    value.emplace(7);
    EXPECT_EQ(result.get(), 7);
    EXPECT_EQ(held.use_count(), 1);
  }
  EXPECT_EQ(check.report(), "");
}

TEST(LateErrors, WhatComesThroughIndirectValuesAndDroppedPromisesIsAmended) {
  const LeakCheck check;
  {
    const auto indirect = make_indirect_async_value();
    EXPECT_TRUE(amend_error(*indirect, adds("here")));
    indirect->forward_to(make_error_async_value(Error(ErrorCode::kIo, "lost")));
    EXPECT_STREQ(indirect->error().what(), "lost [here]");
    auto dropped = make_promise<int>();
    const auto result = dropped.value();
    EXPECT_TRUE(amend_error(*result.get_async_value(), adds("there")));
    dropped = Promise<int>();
    EXPECT_EQ(result.error().path(), std::vector<std::string>{"there"});
    (void)amend_error(*make_unconstructed_async_value<int>().get_async_value(), adds("nowhere"));
  }
  EXPECT_EQ(check.report(), "");
}

// Others begin to wait while the error is amended. Break: publish by an exchange.
TEST(LateErrors, OneThatComesWhileTheValueIsCompletedIsEitherTooLateOrHeard) {
  for (int i = 0; i < 2000; ++i) {
    auto value = make_promise<int>();
    const auto result = value.value();
    std::atomic<bool> begins{false};
    std::thread producer([&] {
      while (!begins) {
      }
      value.set_error(Error(ErrorCode::kIo, "lost"));
    });
    begins = true;
    result.and_then([] {});
    const bool is_heard = amend_error(*result.get_async_value(), adds("here"));
    producer.join();
    ASSERT_EQ(result.error().path().size(), is_heard ? 1u : 0u);
  }
}

}  // namespace
}  // namespace coppice
