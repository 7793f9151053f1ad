// Tests of apps/mpm/bspline.h: the moments that APIC and MLS-MPM rely on, and the base node's choice.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "apps/mpm/bspline.h"

namespace coppice::mpm {
namespace {

constexpr unsigned kSeed = 77;
constexpr float kDx = 0.125f;

struct Stencil {
  int base;
  float fx, weight[kStencilWidth];
};

Stencil stencil_at(float cells) {
  const float base = bspline_base(cells);
  Stencil s{static_cast<int>(base), cells - base, {}};
  bspline_weights(s.fx, s.weight);
  return s;
}

TEST(MpmBspline, WeightsHaveTheStatedMoments) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> uniform(-8.0f, 8.0f);
  for (int n = 0; n < 20000; ++n) {
    const float x = uniform(random);
    const Stencil s = stencil_at(x / kDx);
    double sum = 0, first = 0, second = 0;
    for (int i = 0; i < kStencilWidth; ++i) {
      const double w = s.weight[i];
      const double offset = (s.base + i) * static_cast<double>(kDx) - x;  // node - particle
      ASSERT_GE(w, 0.0);
      sum += w;
      first += w * offset;
      second += w * offset * offset;
    }
    const double eps = 64 * 6e-8;  // |x / dx| <= 64 cells carries that absolute rounding, in cells
    ASSERT_NEAR(sum, 1.0, 4e-7);
    ASSERT_NEAR(first, 0.0, eps * kDx);
    ASSERT_NEAR(second, kDx * kDx / 4, eps * kDx * kDx);
  }
}

TEST(MpmBspline, BaseNodeIsFlooredAlsoBelowZero) {
  const struct {
    float cells;
    int base;
    float fx;
  } cases[] = {{0.0f, -1, 1.0f},  {0.5f, 0, 0.5f},   {0.49f, -1, 1.49f}, {3.2f, 2, 1.2f},
               {-0.2f, -1, 0.8f}, {-0.5f, -1, 0.5f}, {-0.6f, -2, 1.4f},  {-7.25f, -8, 0.75f}};
  for (const auto& c : cases) {
    const Stencil s = stencil_at(c.cells);
    EXPECT_EQ(s.base, c.base) << c.cells;
    EXPECT_NEAR(s.fx, c.fx, 1e-6f) << c.cells;
  }
}

TEST(MpmBspline, WeightsMatchTheSpline) {
  const auto spline = [](double r) {
    r = std::fabs(r);
    return r < 0.5 ? 0.75 - r * r : r < 1.5 ? 0.5 * (1.5 - r) * (1.5 - r) : 0.0;
  };
  for (float cells = -3.0f; cells < 3.0f; cells += 0.03125f) {
    const Stencil s = stencil_at(cells);
    for (int i = 0; i < kStencilWidth; ++i)
      EXPECT_NEAR(s.weight[i], spline(cells - (s.base + i)), 1e-6) << cells;
  }
}

}  // namespace
}  // namespace coppice::mpm
