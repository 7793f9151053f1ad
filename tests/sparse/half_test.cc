// Fields of Half: every value comes back as it was rounded, on host and device alike.
#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/math.h"
#include "half.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/loop_devices.h"

namespace coppice {
namespace {

TEST(HalfTest, RoundsToTheNearestEvenOne) {
  EXPECT_EQ(Half(1).bits, 0x3c00);
  EXPECT_EQ(Half(-2).bits, 0xc000);
  EXPECT_EQ(Half(65504).bits, 0x7bff);
  EXPECT_EQ(Half(65520).bits, 0x7c00);  // infinite: the even one of the two around it
  EXPECT_EQ(Half(65519).bits, 0x7bff);
  EXPECT_EQ(Half(1 + 0x1p-11f).bits, 0x3c00);
  EXPECT_EQ(Half(1 + 3 * 0x1p-11f).bits, 0x3c02);
  EXPECT_EQ(Half(0x1p-24f).bits, 1);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::nanf("")))));
  // Each of them is itself again.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    ASSERT_EQ(Half(static_cast<float>(half)).bits, bits);
  }
}

class Halves : public LoopTest {};

TEST_P(Halves, AreWhatTheHostMakesOfTheSameFloats) {
  constexpr int kSide = 64;
  std::vector<float> values(kSide * kSide);
  std::mt19937 random(3);
  for (float& v : values)
    v = std::ldexp(1.0f + static_cast<float>(random() % 100000) / 1e5f, static_cast<int>(random() % 50) - 30);
  values[5] = std::numeric_limits<float>::infinity(), values[6] = -1e9f, values[7] = 1e-9f;
  Tree tree(device);
  const Node leaf = tree.root().pointer({8, 8}).dense({8, 8});
  const Field<Half> now = leaf.place<Half>("now"), next = leaf.place<Half>("next");
  const Field<HalfPair> pair = leaf.place<HalfPair>("pair");
  run(fill_halves, range({kSide, kSide}), now, inout(values), kSide);
  const std::vector<Half> stored = wait_read(now, {0, 0}, {kSide, kSide});
  for (int i = 0; i < kSide * kSide; ++i) ASSERT_EQ(stored[i].bits, Half(values[i]).bits) << values[i];
  run(blur_halves, over(leaf), now, next);
  const std::vector<Half> blurred = wait_read(next, {0, 0}, {kSide, kSide});
  for (int x = 2; x + 1 < kSide; ++x) {
    for (int y = 1; y + 1 < kSide; ++y) {
      const auto at = [&](int dx, int dy) -> float { return stored[(x + dx) * kSide + y + dy]; };
      ASSERT_EQ(blurred[x * kSide + y].bits, Half((at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) / 4).bits);
    }
  }
  run(grow_halves, over(leaf), next, Half(0.5f));
  run(pair_halves, over(leaf), next, pair);
  const Half sum = wait_read(next, {20, 20});
  EXPECT_EQ(sum.bits, Half(static_cast<float>(blurred[20 * kSide + 20]) + 0.5f).bits);
  EXPECT_EQ(wait_read(pair, {20, 20}).second.bits, Half(2 * static_cast<float>(sum)).bits);
  EXPECT_EQ(leaf.wait_usage().active_cells, 64u * 64);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Halves, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
