// The law of clay and mud alone (apps/mpm/clay_model.h): simple shear, tearing, and what it keeps; and the
// elastic energies of all laws against their stresses.
//
// Seen to fail when the code was broken: the yield stress taken as a uniaxial one (a third too small in
// shear), the overstress without its factor of two, the torn volume dropped.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "apps/mpm/material_models.h"

namespace coppice::mpm {
namespace {

constexpr double kYoung_Pa = 1e6, kPoisson = 0.3, kYield_Pa = 2e3;

template <int D>
Clay<double, D> clay(double viscosity_Pa_s = 0) {
  auto c = Clay<double, D>::from_young(kYoung_Pa, kPoisson, kYield_Pa);
  c.viscosity = viscosity_Pa_s;
  return c;
}

// Returns the shear stress after simple shear at a rate (1/s) up to an amount, in steps of dt.
template <int D>
double shear_stress(const Clay<double, D>& material, double rate, double amount, double dt) {
  SmallMat<double, D> f = identity<double, D>(), gradient{}, tau{};
  gradient.m[1] = rate;
  double scalar = 0;
  for (double t = 0; t * rate < amount; t += dt) {
    const auto r = material.advance(f, scalar, gradient, dt);
    f = r.f, scalar = r.scalar, tau = r.tau;
  }
  return tau.m[1];
}

// Bingham's law: it comes to yield + viscosity times the rate, in the plane and in space, with long steps as
// with short ones.
template <int D>
void check_shear() {
  EXPECT_NEAR(shear_stress(clay<D>(), 1.0, 1e-3, 1e-5), clay<D>().mu * 1e-3, 1e-4 * clay<D>().mu * 1e-3);
  EXPECT_NEAR(shear_stress(clay<D>(), 1.0, 0.2, 1e-4), kYield_Pa, 0.002 * kYield_Pa);
  for (const double viscosity : {50.0, 2000.0}) {
    for (const double rate : {0.5, 4.0}) {
      for (const double dt : {1e-4, 2e-3}) {
        const double expected = kYield_Pa + viscosity * rate;
        EXPECT_NEAR(shear_stress(clay<D>(viscosity), rate, 0.3, dt), expected, 0.01 * expected)
            << D << " " << viscosity << " " << rate << " " << dt;
      }
    }
  }
}
TEST(MpmClay, FlowsAtItsYieldStressAndByItsViscosity) {
  check_shear<2>();
  check_shear<3>();
}

// It keeps the shape that it was given: what is left of a shear is the elastic part.
TEST(MpmClay, KeepsItsShape) {
  const auto material = clay<3>();
  SmallMat<double, 3> f = identity<double, 3>(), gradient{};
  gradient.m[1] = 1;
  double scalar = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto r = material.advance(f, scalar, gradient, 1e-4);
    f = r.f, scalar = r.scalar;
  }
  const SmallMat<double, 3> strain = f * transpose(f);  // 1 + twice the strain, and not the rotation
  EXPECT_NEAR(strain.m[1], kYield_Pa / material.mu, 0.01 * kYield_Pa / material.mu);
  EXPECT_NEAR(determinant(f), 1, 1e-12);
}

// Pressure has no bound, and changes nothing in shear: it is not sand.
TEST(MpmClay, BearsPressureAndShearsAtTheSameStress) {
  const auto material = clay<3>();
  const double bulk = material.lambda + 2.0 / 3 * material.mu;
  const auto pressed = material.project(scaled_identity<double, 3>(0.9), 0.0);
  EXPECT_NEAR(material.kirchhoff_stress(pressed.f, 0).m[0], 3 * bulk * std::log(0.9), 1e-6 * bulk);
  SmallMat<double, 3> sheared = scaled_identity<double, 3>(0.9);
  sheared.m[1] = 0.2;
  const SmallMat<double, 3> tau = material.kirchhoff_stress(material.project(sheared, 0.0).f, 0);
  const double mean = trace(tau) / 3;
  double norm2 = 0;
  for (int i = 0; i < 9; ++i) norm2 += std::pow(tau.m[i] - (i % 4 == 0 ? mean : 0), 2);
  EXPECT_NEAR(std::sqrt(norm2), std::sqrt(2.0) * kYield_Pa, 1e-6 * kYield_Pa);
}

// Torn by 2 % of its volume it bears its yield stress; pressed back it bears no pressure before the gap is
// closed, and has its volume then.
TEST(MpmClay, ComesApartAndClosesAgain) {
  const auto material = clay<2>();
  const double bulk = material.lambda + material.mu;  // of the plane
  auto state = material.project(scaled_identity<double, 2>(1.01), 0.0);
  EXPECT_NEAR(material.kirchhoff_stress(state.f, 0).m[0], kYield_Pa, 1e-6 * kYield_Pa);
  EXPECT_NEAR(state.scalar, 2 * std::log(1.01) - kYield_Pa / bulk, 1e-12);
  state = material.project((1 / 1.01) * state.f, state.scalar);
  EXPECT_NEAR(state.scalar, 0, 1e-12);
  EXPECT_NEAR(trace(material.kirchhoff_stress(state.f, 0)), 0, 1e-6 * kYield_Pa);
  EXPECT_NEAR(determinant(state.f), 1, 1e-9);
}

TEST(MpmClay, ComesBackFromFlatAndInvertedStates) {
  const auto material = Clay<float, 3>::from_young(1e6f, 0.3f, 2e3f);
  for (const float s : {-1.0f, -0.3f, -1e-5f, 0.0f, 1e-5f}) {
    SmallMat<float, 3> f{{1, 0, 0, 0, s, 0, 0, 0, 1}};
    float scalar = 0;
    for (int i = 0; i < 8; ++i) {
      const auto r = material.advance(f, scalar, {}, 1e-4f);
      f = r.f, scalar = r.scalar;
      for (const float x : r.tau.m) ASSERT_TRUE(std::isfinite(x)) << s;
    }
    if (s <= -0.3f) EXPECT_GT(determinant(f), 0.0f) << s;
  }
}

// tau = dpsi/dF F^T by central differences of each law's own energy, at states within every yield surface.
template <class M, int D>
void check_energy(const M& material, double scalar) {
  std::mt19937 random(4711);
  std::normal_distribution<double> normal(0, 2e-3);
  const double h = 1e-6;
  for (int n = 0; n < 100; ++n) {
    SmallMat<double, D> f = scaled_identity<double, D>(0.99), p{};
    for (double& x : f.m) x += normal(random);
    // The scalar of water is its volume, whatever F is.
    const auto psi = [&](const SmallMat<double, D>& at) {
      return material.energy(at, M::kUsesDeformationGradient ? scalar : determinant(at));
    };
    for (int i = 0; i < D * D; ++i) {
      SmallMat<double, D> up = f, down = f;
      up.m[i] += h, down.m[i] -= h;
      p.m[i] = (psi(up) - psi(down)) / (2 * h);
    }
    const SmallMat<double, D> expected = p * transpose(f);
    const SmallMat<double, D> tau =
        material.kirchhoff_stress(f, M::kUsesDeformationGradient ? scalar : determinant(f));
    for (int i = 0; i < D * D; ++i) ASSERT_NEAR(tau.m[i], expected.m[i], 1e-6 * kYoung_Pa) << i;
  }
}
template <int D>
void check_energies() {
  check_energy<Clay<double, D>, D>(clay<D>(), 0);
  check_energy<Sand<double, D>, D>(Sand<double, D>::from_young(kYoung_Pa, kPoisson, 0.6), 0);
  check_energy<Jelly<double, D>, D>(Jelly<double, D>::from_young(kYoung_Pa, kPoisson), 0);
  check_energy<Snow<double, D>, D>(Snow<double, D>::from_young(kYoung_Pa, kPoisson), 0.95);
  check_energy<Water<double, D>, D>(Water<double, D>::from_bulk_modulus(kYoung_Pa), 1);
  auto soft = Water<double, D>::from_bulk_modulus(kYoung_Pa);
  soft.gamma = 1;
  check_energy<Water<double, D>, D>(soft, 1);
}
TEST(MpmEnergies, HaveTheStressesAsDerivatives) {
  check_energies<2>();
  check_energies<3>();
}

}  // namespace
}  // namespace coppice::mpm
