// Tests of apps/mpm/fast_math.h: error bounds over dense samples against double, and the clamped ends.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/mpm/fast_math.h"

namespace coppice::mpm {
namespace {

double relative_error(float value, double exact) { return std::fabs(value - exact) / std::fabs(exact); }

TEST(MpmFastMath, ExpIsWithinItsBound) {
  double worst = 0;
  for (int i = 0; i <= 400000; ++i) {
    const float x = -87.0f + 175.0f * static_cast<float>(i) / 400000.0f;
    worst = std::max(worst, relative_error(fast_exp(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2e-7);
}

TEST(MpmFastMath, Expm1IsWithinItsBoundAlsoNearZero) {
  double worst = 0;
  for (int i = 1; i <= 200000; ++i) {
    for (const float sign : {-1.0f, 1.0f}) {
      const float x = sign * std::pow(10.0f, -20.0f + 21.9f * static_cast<float>(i) / 200000.0f);
      worst = std::max(worst, relative_error(fast_expm1(x), std::expm1(static_cast<double>(x))));
    }
  }
  EXPECT_LE(worst, 4e-7);
  EXPECT_EQ(fast_expm1(0.0f), 0.0f);
}

TEST(MpmFastMath, LogIsWithinItsBoundOverTheWholeRange) {
  double worst = 0;
  for (std::int32_t bits = 0x00800000; bits < 0x7f000000; bits += 5003) {
    const float x = __builtin_bit_cast(float, bits);
    if (x != 1.0f) worst = std::max(worst, relative_error(fast_log(x), std::log(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 3e-7);
}

TEST(MpmFastMath, LogIsRelativelyAccurateNearOne) {
  double worst = 0;
  for (std::int32_t offset = -100000; offset <= 100000; ++offset) {
    const float x = __builtin_bit_cast(float, 0x3f800000 + offset);
    if (x != 1.0f) worst = std::max(worst, relative_error(fast_log(x), std::log(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 3e-7);
  EXPECT_EQ(fast_log(1.0f), 0.0f);
}

TEST(MpmFastMath, PowIsWithinItsBound) {
  for (int i = 0; i <= 2000; ++i) {
    const float x = 0.3f + 2.0f * static_cast<float>(i) / 2000.0f;
    for (const float y : {-8.0f, -7.0f, -6.0f, -1.4f, 0.5f, 3.0f}) {
      const double exact = std::pow(static_cast<double>(x), static_cast<double>(y));
      ASSERT_LE(relative_error(fast_pow(x, y), exact), (2 + 3 * std::fabs(y * std::log(x))) * 1e-7)
          << x << " " << y;
    }
  }
}

TEST(MpmFastMath, CosineOfAThirdIsTheLargestRoot) {
  double worst = 0;
  for (int i = -100000; i <= 100000; ++i) {
    const float x = static_cast<float>(i) / 100000.0f;
    worst = std::max(worst, std::fabs(fast_cos_third(x) - std::cos(std::acos(static_cast<double>(x)) / 3)));
  }
  EXPECT_LE(worst, 4e-7);
  EXPECT_EQ(fast_cos_third(-1.5f), fast_cos_third(-1.0f));
  EXPECT_EQ(fast_cos_third(3.0f), fast_cos_third(1.0f));
}

TEST(MpmFastMath, ArgumentsOutOfRangeAreClamped) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isfinite(fast_exp(1e30f)));
  EXPECT_TRUE(std::isfinite(fast_exp(infinity)));
  EXPECT_GT(fast_exp(-infinity), 0.0f);
  EXPECT_EQ(fast_expm1(-1e30f), -1.0f);
  EXPECT_NEAR(fast_log(0.0f), -87.3365f, 1e-4f);
  EXPECT_EQ(fast_log(-3.0f), fast_log(0.0f));
}

}  // namespace
}  // namespace coppice::mpm
