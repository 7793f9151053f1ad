// Tests of apps/mpm/svd.h: what U and sigma of a matrix must satisfy, in double.

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <random>

#include "apps/mpm/svd.h"

namespace coppice::mpm {
namespace {

constexpr unsigned kSeed = 20130;
constexpr double kOrthogonality = 4e-6;  // entries' rounding over about 20 rotations

template <int D>
using MatD = Eigen::Matrix<double, D, D>;

template <int D>
MatD<D> widen(const SmallMat<float, D>& a) {
  MatD<D> r;
  for (int i = 0; i < D * D; ++i) r(i / D, i % D) = a.m[i];
  return r;
}
template <int D>
SmallMat<float, D> narrow(const MatD<D>& a) {
  SmallMat<float, D> r{};
  for (int i = 0; i < D * D; ++i) r.m[i] = static_cast<float>(a(i / D, i % D));
  return r;
}
template <int D>
MatD<D> random_matrix(std::mt19937& random) {
  std::normal_distribution<double> normal;
  MatD<D> a;
  for (int i = 0; i < D * D; ++i) a(i / D, i % D) = normal(random);
  return a;
}
template <int D>
void check_left_stretch() {
  std::mt19937 random(kSeed);
  for (int n = 0; n < 20000; ++n) {
    const SmallMat<float, D> f = narrow<D>(MatD<D>(MatD<D>::Identity() + 0.3 * random_matrix<D>(random)));
    const LeftStretch<float, D> d = left_stretch(f);
    const MatD<D> u = widen(d.u);
    const MatD<D> b = widen(f) * widen(f).transpose();
    Eigen::Matrix<double, D, 1> sigma;
    for (int i = 0; i < D; ++i) sigma(i) = d.sigma[i];
    ASSERT_LE((u * sigma.array().square().matrix().asDiagonal() * u.transpose() - b).norm(), 6e-5 * b.norm());
    ASSERT_NEAR(sigma.prod(), widen(f).determinant(), 1e-6 * std::pow(widen(f).norm(), D));
    ASSERT_LE((u.transpose() * u - MatD<D>::Identity()).norm(), kOrthogonality);
  }
}

TEST(MpmSvd, LeftStretchDiagonalisesTheLeftCauchyGreenTensor) {
  check_left_stretch<2>();
  check_left_stretch<3>();
}

TEST(MpmSvd, LeftStretchOfTheIdentityIsExact) {
  const LeftStretch<float, 3> d = left_stretch(identity<float, 3>());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(d.sigma[i], 1.0f);
}

}  // namespace
}  // namespace coppice::mpm
