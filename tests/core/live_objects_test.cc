// core/live_objects.h: a leak is reported, and only that.
#include "core/live_objects.h"

#include <gtest/gtest.h>

#include "core/async_value.h"

namespace coppice {
namespace {

TEST(LiveObjects, AreDescribedByNumberAndKind) {
  EXPECT_EQ(describe({}), "");
  EXPECT_EQ(describe({1, 0, 1}), "1 async value, 1 block");
  EXPECT_EQ(describe({2, 1, 0}), "2 async values, 1 other reference-counted object");
  EXPECT_EQ(describe({0, -1, -2}), "-1 other reference-counted object, -2 blocks");
}

TEST(LiveObjects, ALeakOfOneValueIsReportedUntilItIsMended) {
  if (!kCountsLiveObjects) GTEST_SKIP() << "nothing is counted without COPPICE_DEBUG";
  const LeakCheck check;
  EXPECT_EQ(check.report(), "");
  auto value = make_available_async_value<int>(42);
  AsyncValue* const leaked = value.release_rc_reference().release();
  EXPECT_EQ(check.report(), "1 async value, 1 block");
  RCReference<AsyncValue>::reclaim(leaked).reset();
  EXPECT_EQ(check.report(), "");
}

TEST(LiveObjects, WaitersAndErrorsCount) {
  if (!kCountsLiveObjects) GTEST_SKIP() << "nothing is counted without COPPICE_DEBUG";
  const LeakCheck check;
  {
    auto value = make_unconstructed_async_value<int>();
    value.and_then([] {});
    EXPECT_EQ(check.report(), "1 async value, 2 blocks");
    value.set_error(Error(ErrorCode::kInternal, "an error"));
    EXPECT_EQ(check.report(), "1 async value, 1 other reference-counted object, 1 block");
  }
  EXPECT_EQ(check.report(), "");
}

}  // namespace
}  // namespace coppice
