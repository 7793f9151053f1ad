// core/error.h: texts, locations, sharing.
#include "core/error.h"

#include <gtest/gtest.h>

#include <set>

namespace coppice {
namespace {

TEST(Error, TextHasTheKnownPartsOfTheLocation) {
  EXPECT_STREQ(Error(ErrorCode::kIo, "disk is full").what(), "disk is full");
  EXPECT_STREQ(Error(ErrorCode::kUsage, "unknown key", {"a.toml", 3, 7}).what(), "a.toml:3:7: unknown key");
  EXPECT_STREQ(Error(ErrorCode::kUsage, "unknown key", {"a.toml", 3, 0}).what(), "a.toml:3: unknown key");
  EXPECT_STREQ(Error(ErrorCode::kUsage, "unknown key", {"a.toml", 0, 7}).what(), "a.toml: unknown key");
  EXPECT_STREQ(Error(ErrorCode::kUsage, "unknown key", {"", 3, 7}).what(), "unknown key");
}

TEST(Error, IsCaughtAsStandardExceptionWithAllItHolds) {
  try {
    throw Error(ErrorCode::kDataLoss, "truncated", {"bunny.ply", 12, 0});
  } catch (const std::exception& e) {
    const auto& error = dynamic_cast<const Error&>(e);
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(error.message(), "truncated");
    EXPECT_EQ(error.location().file, "bunny.ply");
    EXPECT_EQ(error.location().line, 12);
  }
}

TEST(Error, CopiesShareTheirTextAndOutliveTheOriginal) {
  static_assert(std::is_nothrow_copy_constructible_v<Error> && std::is_nothrow_copy_assignable_v<Error>);
  Error copy(ErrorCode::kInternal, "other");
  const char* text = nullptr;
  {
    const Error original(ErrorCode::kNumeric, "not finite");
    text = original.what();
    copy = original;
  }
  EXPECT_EQ(copy.what(), text);
  EXPECT_EQ(copy.code(), ErrorCode::kNumeric);
  EXPECT_EQ(copy.message(), "not finite");
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kUsage); ++code)
    names.insert(name_of(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(ErrorCode::kUsage) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace coppice
