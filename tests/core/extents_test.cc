// core/extents.h: linear indices and integer arithmetic, against brute force.
#include "core/extents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace coppice {
namespace {

TEST(Extents, LinearIndexCountsTheLastAxisFastest) {
  constexpr Extents<3> box{{3, 4, 5}};
  static_assert(box.count() == 60);
  int64_t expected = 0;
  for (int x = 0; x < 3; ++x)
    for (int y = 0; y < 4; ++y)
      for (int z = 0; z < 5; ++z, ++expected) {
        EXPECT_EQ(box.linear({x, y, z}), expected);
        EXPECT_EQ(box.index_of(expected), (std::array<int32_t, 3>{x, y, z}));
      }
}

TEST(Extents, CountAndLinearIndexNeed64Bits) {
  constexpr int32_t n = 1 << 20;
  constexpr Extents<3> box{{n, n, n}};
  EXPECT_EQ(box.count(), int64_t{1} << 60);
  EXPECT_EQ(box.index_of(box.linear({n - 1, 5, n - 2})), (std::array<int32_t, 3>{n - 1, 5, n - 2}));
}

TEST(Extents, KnowsWhatLiesInside) {
  constexpr Extents<2> box{{3, 4}};
  EXPECT_TRUE(box.contains({0, 0}));
  EXPECT_TRUE(box.contains({2, 3}));
  EXPECT_FALSE(box.contains({3, 0}));
  EXPECT_FALSE(box.contains({0, 4}));
  EXPECT_FALSE(box.contains({-1, 0}));
  EXPECT_EQ((Extents<2>{{3, 0}}.count()), 0);
}

TEST(Extents, BlocksCoverTheCells) {
  EXPECT_EQ(div_up(Extents<3>{{9, 8, 1}}, Extents<3>{{4, 4, 4}}), (Extents<3>{{3, 2, 1}}));
}

TEST(IntegerArithmetic, AgreesWithFloatingPoint) {
  for (int a = -20; a <= 20; ++a)
    for (int b = 1; b <= 7; ++b) {
      EXPECT_EQ(floor_div(a, b), static_cast<int>(std::floor(static_cast<double>(a) / b)));
      EXPECT_EQ(floor_div(a, b) * b + floor_mod(a, b), a);
      EXPECT_GE(floor_mod(a, b), 0);
      if (a >= 0) {
        EXPECT_EQ(div_up(a, b), static_cast<int>(std::ceil(static_cast<double>(a) / b)));
        EXPECT_EQ(round_up(a, b), div_up(a, b) * b);
      }
    }
}

TEST(IntegerArithmetic, HoldsAtTheEndsOfTheRange) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(div_up(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(floor_div(std::numeric_limits<int32_t>::min(), 1), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(log2_floor(kMax), 62);
  EXPECT_EQ(log2_ceil(kMax), 63);
}

TEST(IntegerArithmetic, PowersOfTwoAndLogarithms) {
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(-4));
  EXPECT_TRUE(is_power_of_two(uint64_t{1} << 63));
  for (int x = 1; x <= 70; ++x) {
    int power = 0;
    while ((2 << power) <= x) ++power;
    EXPECT_EQ(log2_floor(x), power);
    EXPECT_EQ(is_power_of_two(x), (1 << power) == x);
    EXPECT_EQ(log2_ceil(x), (1 << power) == x ? power : power + 1);
  }
}

#ifdef COPPICE_DEBUG
TEST(ExtentsDeathTest, DebugBuildsRefuseAnIndexOutside) {
  EXPECT_DEATH((Extents<2>{{3, 4}}.linear({1, 4})), "axis 1: 4 of 4");
}
#endif

}  // namespace
}  // namespace coppice
