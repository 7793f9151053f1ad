// Tests of apps/mpm/svd.h against Eigen and on the inputs that break naive decompositions.

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "apps/mpm/svd.h"

namespace coppice::mpm {
namespace {

constexpr unsigned kSeed = 20130;
constexpr double kReconstruction = 2e-6;  // of |F|
constexpr double kOrthogonality = 4e-6;   // entries' rounding over about 20 rotations

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
MatD<D> random_rotation(std::mt19937& random) {
  MatD<D> q = Eigen::HouseholderQR<MatD<D>>(random_matrix<D>(random)).householderQ();
  if (q.determinant() < 0) q.col(0) *= -1;
  return q;
}

// Every promise of svd on one matrix.
template <int D>
void expect_good_svd(const SmallMat<float, D>& f) {
  const MatD<D> exact = widen(f);
  const Svd<float, D> d = svd(f);
  const MatD<D> u = widen(d.u);
  const MatD<D> v = widen(d.v);
  Eigen::Matrix<double, D, 1> sigma;
  for (int i = 0; i < D; ++i) sigma(i) = d.sigma[i];
  const double norm = exact.norm();
  ASSERT_LE((u * sigma.asDiagonal() * v.transpose() - exact).norm(), kReconstruction * norm) << exact;
  ASSERT_LE((u.transpose() * u - MatD<D>::Identity()).norm(), kOrthogonality) << exact;
  ASSERT_LE((v.transpose() * v - MatD<D>::Identity()).norm(), kOrthogonality) << exact;
  ASSERT_GT(u.determinant(), 0) << exact;
  ASSERT_GT(v.determinant(), 0) << exact;
  const auto reference = Eigen::JacobiSVD<MatD<D>>(exact).singularValues();
  for (int i = 0; i < D; ++i) {
    ASSERT_NEAR(std::fabs(sigma(i)), reference(i), kReconstruction * norm) << exact;
    if (i + 1 < D) {
      ASSERT_GE(sigma(i), 0) << exact;
    }
  }
  // The sign is defined where the least value stands out of the rounding noise.
  if (reference(D - 1) > 1e-5 * reference(0)) {
    ASSERT_EQ(sigma(D - 1) < 0, exact.determinant() < 0) << exact;
  }
}

template <int D>
void check_random() {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (int n = 0; n < 50000; ++n) expect_good_svd(narrow<D>(random_matrix<D>(random)));
}

// Singular values spread over the given number of decades.
template <int D>
void check_conditioned(double decades) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", decades " << decades);
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> exponent(-decades, 0);
  for (int n = 0; n < 5000; ++n) {
    Eigen::Matrix<double, D, 1> sigma;
    for (int i = 0; i < D; ++i) sigma(i) = std::pow(10.0, exponent(random));
    sigma(D - 1) *= n % 2 == 0 ? 1 : -1;
    expect_good_svd(
        narrow<D>(random_rotation<D>(random) * sigma.asDiagonal() * random_rotation<D>(random).transpose()));
  }
}

TEST(MpmSvd, AgreesWithEigenOnRandomMatrices) {
  check_random<2>();
  check_random<3>();
}

TEST(MpmSvd, KeepsAccuracyOnIllConditionedMatrices) {
  for (const double decades : {1.0, 3.0, 6.0, 12.0}) {
    check_conditioned<2>(decades);
    check_conditioned<3>(decades);
  }
}

TEST(MpmSvd, HandlesSpecialMatrices3d) {
  const std::vector<SmallMat<float, 3>> matrices = {{{0, 0, 0, 0, 0, 0, 0, 0, 0}},
                                                    identity<float, 3>(),
                                                    scaled_identity<float, 3>(-1),
                                                    {{-1, 0, 0, 0, 1, 0, 0, 0, 1}},
                                                    {{1, 0, 0, 0, -1, 0, 0, 0, 1}},
                                                    {{1, 0, 0, 0, 1, 0, 0, 0, -1}},
                                                    {{0, 1, 0, 1, 0, 0, 0, 0, 1}},
                                                    {{0, 0, 1, 1, 0, 0, 0, 1, 0}},
                                                    {{1, 0, 0, 0, 0, 0, 0, 0, 0}},
                                                    {{0, 0, 0, 0, 0, 0, 0, 0, 3}},
                                                    {{1, 1, 1, 1, 1, 1, 1, 1, 1}},
                                                    {{1, 2, 3, 2, 4, 6, 3, 6, 9}},
                                                    {{1, 2, 3, 4, 5, 6, 7, 8, 9}},
                                                    {{1, 0, 0, 0, 1, 0, 0, 0, 0}},
                                                    {{0, 1, 0, 0, 0, 1, 0, 0, 0}},
                                                    {{2, 0, 0, 0, 2, 0, 0, 0, 1}},
                                                    {{1, 0, 0, 0, 2, 0, 0, 0, 2}},
                                                    {{1, 1e-7f, 0, 0, 1, 1e-7f, 0, 0, 1}},
                                                    {{0, -1, 0, 1, 0, 0, 0, 0, 1}},
                                                    {{1, 0, 0, 0, 1e-20f, 0, 0, 0, 1e-30f}},
                                                    scaled_identity<float, 3>(1e-30f),
                                                    scaled_identity<float, 3>(1e30f),
                                                    {{1e-25f, 2e-25f, 0, 0, 1e-25f, 0, 0, 0, -1e-25f}}};
  for (const auto& f : matrices) expect_good_svd(f);
}

TEST(MpmSvd, HandlesSpecialMatrices2d) {
  const std::vector<SmallMat<float, 2>> matrices = {{{0, 0, 0, 0}},
                                                    {{1, 0, 0, 1}},
                                                    {{-1, 0, 0, -1}},
                                                    {{1, 0, 0, -1}},
                                                    {{-1, 0, 0, 1}},
                                                    {{0, 1, 1, 0}},
                                                    {{0, -1, 1, 0}},
                                                    {{1, 1, 1, 1}},
                                                    {{0, 0, 0, 2}},
                                                    {{0, 3, 0, 0}},
                                                    {{1, 2, 2, 4}},
                                                    {{1e-30f, 0, 0, 2e-30f}},
                                                    {{1e30f, 1e30f, 0, -1e30f}},
                                                    {{1, 1e-8f, 1e-8f, -1}}};
  for (const auto& f : matrices) expect_good_svd(f);
}

TEST(MpmSvd, PolarFactorIsTheNearestRotation) {
  std::mt19937 random(kSeed);
  for (int n = 0; n < 2000; ++n) {
    const MatD<3> r = random_rotation<3>(random);
    const MatD<3> b = random_matrix<3>(random);
    const MatD<3> s = b * b.transpose() + 0.1 * MatD<3>::Identity();
    const Polar<float, 3> p = polar_decomposition(narrow<3>(r * s));
    // A rounding of F by eps |F| turns R by at most 2 eps |F| / (sum of the two least stretches) >= eps |F| /
    // 0.1.
    ASSERT_LE((widen(p.r) - r).norm(), 4e-6 * (1 + s.norm() / 0.1)) << s;
    ASSERT_LE((widen(p.s) - s).norm(), 1e-5 * s.norm());
    ASSERT_LE((widen(p.r) * widen(p.s) - widen(narrow<3>(r * s))).norm(), 4e-6 * s.norm());
  }
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
