// core/extents.h: integer arithmetic, against floating point.
#include "core/extents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace coppice {
namespace {

TEST(IntegerArithmetic, AgreesWithFloatingPoint) {
  for (int a = 0; a <= 20; ++a)
    for (int b = 1; b <= 7; ++b) {
      EXPECT_EQ(div_up(a, b), static_cast<int>(std::ceil(static_cast<double>(a) / b)));
      EXPECT_EQ(round_up(a, b), div_up(a, b) * b);
    }
}

TEST(IntegerArithmetic, HoldsAtTheEndOfTheRange) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(div_up(kMax, 2), kMax / 2 + 1);
}

}  // namespace
}  // namespace coppice
