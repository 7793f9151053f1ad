// core/check.h: what a failed check prints, and that nothing is evaluated twice or, in release DCHECKs, at
// all.
#include "core/check.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace coppice {
namespace {

enum class Colour { kRed = 3, kBlue = 4 };

TEST(CheckDeathTest, PrintsConditionOperandsAndMessage) {
  const int used = 7;
  const size_t capacity = 5;
  EXPECT_DEATH(COPPICE_CHECK(used <= static_cast<int>(capacity), "tree {} is full", "grid"),
               "^tests/core/check_test.cc:[0-9]+: check failed: used <= .*capacity\\) \\(7 <= 5\\): tree "
               "grid is full");
}

TEST(CheckDeathTest, PrintsEveryKindOfOperand) {
  const std::string text = "snow";
  int* const null = nullptr;
  EXPECT_DEATH(COPPICE_CHECK(text == "sand"), "\\(snow == sand\\)");
  EXPECT_DEATH(COPPICE_CHECK(null != nullptr), "\\(nullptr != nullptr\\)");
  EXPECT_DEATH(COPPICE_CHECK(Colour::kRed == Colour::kBlue), "\\(3 == 4\\)");
  EXPECT_DEATH(COPPICE_CHECK(std::make_unique<int>(1) == nullptr), "\\(\\? == nullptr\\)");
  EXPECT_DEATH(COPPICE_CHECK((6 & 1) != 0), "\\(0 != 0\\)");
  EXPECT_DEATH(COPPICE_CHECK(6 & 1), "\\(6 & 1\\)");
}

TEST(CheckDeathTest, TakesConditionsThatAreNoComparison) {
  const bool is_sorted = false;
  EXPECT_DEATH(COPPICE_CHECK(is_sorted), "check failed: is_sorted\n");
  EXPECT_DEATH(COPPICE_CHECK(is_sorted || 1 > 2, "because {}", 9), "is_sorted \\|\\| 1 > 2: because 9");
  EXPECT_DEATH(COPPICE_CHECK(!std::string().empty()), "check failed");
}

TEST(Check, EvaluatesTheConditionOnceAndPasses) {
  int calls = 0;
  COPPICE_CHECK(++calls == 1, "called {} times", calls);
  COPPICE_CHECK(++calls == 2 && calls > 0);
  EXPECT_EQ(calls, 2);
}

TEST(Check, IsOneStatement) {
  bool took_else = false;
  if (took_else)
    COPPICE_CHECK(true);
  else
    took_else = true;
  EXPECT_TRUE(took_else);
}

TEST(Check, DebugCheckIsNotEvaluatedInReleaseBuilds) {
  int calls = 0;
  COPPICE_DCHECK(++calls == 1);
#ifdef COPPICE_DEBUG
  EXPECT_EQ(calls, 1);
#else
  EXPECT_EQ(calls, 0);
#endif
}

}  // namespace
}  // namespace coppice
