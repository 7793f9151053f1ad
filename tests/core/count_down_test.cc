// core/count_down.h and when_all.
#include "core/count_down.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace coppice {
namespace {

Error error_of(const char* text) { return Error(ErrorCode::kUnavailable, text); }

TEST(CountDown, OfNothingIsAvailableAtOnce) {
  CountDown done(0);
  EXPECT_TRUE(done.chain().is_concrete());
  EXPECT_TRUE(done.count_down(0));
}

TEST(CountDown, CompletesWithTheLastOfItsCopies) {
  CountDown done(4);
  CountDown copy = done;
  EXPECT_FALSE(done.count_down(0));
  EXPECT_FALSE(copy.count_down());
  EXPECT_FALSE(done.count_down(2));
  EXPECT_FALSE(done.chain().is_available());
  EXPECT_TRUE(copy.count_down());
  EXPECT_TRUE(done.chain().is_concrete());
  EXPECT_DEATH(done.count_down(), "below 0");
}

TEST(CountDown, ErrorWaitsForTheLastAndTheLowestRankStays) {
  CountDown done(4);
  EXPECT_FALSE(done.count_down(error_of("rank 2"), 2));
  EXPECT_FALSE(done.count_down(error_of("rank 1"), 1));
  EXPECT_FALSE(done.count_down(error_of("rank 1 again"), 1));
  EXPECT_FALSE(done.chain().is_available());
  EXPECT_TRUE(done.count_down());
  ASSERT_TRUE(done.chain().is_error());
  EXPECT_EQ(done.chain().error().message(), "rank 1");
}

TEST(CountDown, DroppedBeforeZeroIsCancelled) {
  AsyncValueRef<Chain> chain;
  {
    CountDown done(2);
    chain = done.chain();
    done.count_down();
  }
  ASSERT_TRUE(chain.is_error());
  EXPECT_EQ(chain.error().code(), ErrorCode::kCancelled);
}

TEST(WhenAll, OfNothingAndOfAvailableValuesIsAvailable) {
  EXPECT_TRUE(when_all(std::span<const RCReference<AsyncValue>>()).is_concrete());
  EXPECT_TRUE(when_all().is_concrete());
  const auto one = make_available_async_value<int>(1);
  EXPECT_TRUE(when_all(one, make_available_async_value<std::string>("x")).is_concrete());
  bool ran = false;
  when_all(one).and_then([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(WhenAll, WaitsForEveryValueWhateverTheOrder) {
  std::vector<AsyncValueRef<int>> values;
  for (int i = 0; i < 4; ++i) values.push_back(make_unconstructed_async_value<int>());
  const auto all = when_all(std::span<const AsyncValueRef<int>>(values));
  for (int i : {2, 0, 3}) {
    values[i].emplace(i);
    EXPECT_FALSE(all.is_available());
  }
  values[1].emplace(1);
  EXPECT_TRUE(all.is_concrete());
}

TEST(WhenAll, FailsWithTheFirstErrorOfTheSpanAfterAllAreAvailable) {
  auto a = make_unconstructed_async_value<int>();
  auto b = make_unconstructed_async_value<int>();
  auto c = make_unconstructed_async_value<float>();
  const auto all = when_all(a, b, c);
  c.set_error(error_of("c"));
  b.set_error(error_of("b"));
  EXPECT_FALSE(all.is_available());
  a.emplace(1);
  ASSERT_TRUE(all.is_error());
  EXPECT_EQ(all.error().message(), "b");
}

TEST(WhenAll, HearsOfDroppedValues) {
  auto a = make_unconstructed_async_value<int>();
  const auto all = when_all(a, make_available_async_value<int>(1));
  a.reset();
  ASSERT_TRUE(all.is_error());
  EXPECT_EQ(all.error().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace coppice
