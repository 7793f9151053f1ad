// core/math.h: dense layout without over-alignment, and boxes.
#include "core/math.h"

#include <gtest/gtest.h>

namespace coppice {
namespace {

TEST(Math, TypesAreDenseAndAlignAsTheirElements) {
  struct Mixed {
    char c;
    Vec4f v;
    Mat2d m;
  };
  static_assert(offsetof(Mixed, v) == 4 && offsetof(Mixed, m) == 24 && sizeof(Mixed) == 56);
  static_assert(std::is_same_v<Vec3f, Eigen::Matrix<float, 3, 1>>);
  // A Vec4f at an address that is 4 but not 16 aligned: with Eigen's alignment on, this store faults or
  // asserts.
  alignas(16) float memory[8] = {};
  auto* v = new (memory + 1) Vec4f(1, 2, 3, 4);
  *v += *v;
  EXPECT_EQ(memory[1], 2);
  EXPECT_EQ(memory[4], 8);
}

TEST(Math, MatricesAreColumnMajor) {
  Mat2f m;
  m << 1, 2, 3, 4;
  EXPECT_EQ(m.data()[1], 3);
  EXPECT_TRUE((m * m.inverse()).isIdentity(4 * std::numeric_limits<float>::epsilon()));
  EXPECT_EQ(Vec3i(1, 0, 0).cross(Vec3i(0, 1, 0)), Vec3i(0, 0, 1));
}

TEST(Aabb, StartsEmptyAndGrowsToWhatItIsGiven) {
  Aabb3f box;
  EXPECT_TRUE(box.is_empty());
  EXPECT_FALSE(box.contains(Vec3f::Zero()));
  box.extend(Vec3f(1, -2, 3));
  EXPECT_FALSE(box.is_empty());
  EXPECT_EQ(box.size(), Vec3f::Zero());
  EXPECT_TRUE(box.contains(Vec3f(1, -2, 3)));
  box.extend(Aabb3f{Vec3f(-1, 0, 0), Vec3f(0, 4, 1)});
  EXPECT_EQ(box.min, Vec3f(-1, -2, 0));
  EXPECT_EQ(box.max, Vec3f(1, 4, 3));
  EXPECT_EQ(box.center(), Vec3f(0, 1, 1.5f));
  box.extend(Aabb3f{});
  EXPECT_EQ(box.size(), Vec3f(2, 6, 3));
  EXPECT_FALSE(box.contains(Vec3f(0, 0, 3.5f)));
}

}  // namespace
}  // namespace coppice
