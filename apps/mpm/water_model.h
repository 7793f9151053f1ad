// The water of the MPM solver: weakly compressible, with viscosity.
//
// Device-clean and branch-free; the functions are those that material_models.h describes for all models.
#pragma once

#include "apps/mpm/material_common.h"

namespace coppice::mpm {

// Weakly compressible water: Tait's equation of state p = K/gamma (J^-gamma - 1) (Monaghan 1994, "Simulating
// free surface flows with SPH"), with an optional Newtonian viscosity, Cauchy stress 2 eta dev(sym grad_v).
// The scalar is J, clamped to [j_min, j_max]: within it |p| <= K/gamma (j_min^-gamma - 1), whatever the
// motion. J follows the divergence of the velocity, whose errors would add up: a pool at rest lost a fifth of
// its depth in 20 s. So it is drawn to the inverse of the density that the grid has there, in a time that a
// wave takes for a few cells; but never up beyond 1, as a free surface looks like water that is stretched: a
// ball in free flight puffed up until its J was j_max. `tension` scales negative pressure: 1 keeps the
// equation of state, 0 lets a stretched fluid fall apart instead of pulling. But even then it holds up to
// J = 1 + cohesive_stretch, with K x (1 - x / cohesive_stretch) for J = 1 + x: the density of particles that
// were sampled at random is off by some hundredths, and water that presses where it is too dense and never
// pulls where it is too thin drives itself apart. The work that tears it, K cohesive_stretch^2 / 6, is 60
// J/m^3 for 1e5 Pa: what 6 mm of height are worth.
template <class T, int D>
struct Water {
  static constexpr MaterialKind kKind = MaterialKind::kWater;
  static constexpr bool kUsesDeformationGradient = false;
  static constexpr bool kUsesScalar = true;
  static constexpr bool kUsesDensity = true;
  static constexpr const char* kScalarName = "volume ratio";
  static constexpr T kInitialScalar = T(1);

  T bulk_modulus;  // Pa
  T gamma = T(7);
  T viscosity = T(0);  // Pa s; explicit, so it needs dt < dx^2 density / (2 D viscosity)
  T tension = T(1);    // 0 .. 1
  T j_min = T(0.6), j_max = T(1.1);
  T cohesive_stretch = T(0.06);
  T relaxation = T(0);  // 1/s, of J to what the density around says

  static constexpr Water from_bulk_modulus(T bulk_modulus_pa) {
    Water water{};
    water.bulk_modulus = bulk_modulus_pa;
    return water;
  }

  // `p` is the equation of state's.
  COPPICE_INLINE T pulled(T p, T j) const {
    const T x = j - T(1), held = -bulk_modulus * x * max_of(T(1) - x / cohesive_stretch, T(0));
    return p < T(0) ? tension * p + (T(1) - tension) * held : p;
  }
  COPPICE_INLINE T pressure(T j) const {
    return pulled(bulk_modulus / gamma * fast_expm1(-gamma * fast_log(j)), j);
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f, T j_trial) const {
    return {f, clamp_to(j_trial, j_min, j_max)};
  }

  // The elastic part alone: the viscous part depends on the velocity gradient and is added by advance.
  COPPICE_INLINE SmallMat<T, D> kirchhoff_stress(SmallMat<T, D>, T j) const {
    return scaled_identity<T, D>(-j * pressure(j));
  }

  // The work of the pressure from J = 1 on.
  COPPICE_INLINE T energy(SmallMat<T, D>, T j) const {
    const T power = max_of(gamma - T(1), T(1e-6));  // where it is 0, -ln J is the limit
    const T work = bulk_modulus / gamma * (fast_expm1(-power * fast_log(j)) / power + (j - T(1)));
    const T x = clamp_to(j - T(1), T(0), cohesive_stretch);
    const T held = bulk_modulus * x * x * (T(0.5) - x / (T(3) * cohesive_stretch));
    return j > T(1) ? tension * work + (T(1) - tension) * held : work;
  }

  // `density` is that of the space around the particle, relative to the one at rest.
  COPPICE_INLINE MaterialResponse<T, D> advance(SmallMat<T, D> f, T j, SmallMat<T, D> grad_v, T dt,
                                                T density = T(1)) const {
    const T divergence = trace(grad_v);
    const T j_trial = j + j * (dt * divergence), j_seen = T(1) / max_of(density, T(0.1));
    const T j_drawn = max_of(min_of(j_trial, j_seen), min_of(j_seen, T(1)));
    const T j_new = clamp_to(j_trial + min_of(relaxation * dt, T(1)) * (j_drawn - j_trial), j_min, j_max);
    const T power_minus_one = fast_expm1(-gamma * fast_log(j_new));  // J^-gamma - 1
    const T p = pulled(bulk_modulus / gamma * power_minus_one, j_new);
    const SmallMat<T, D> deviatoric =
        grad_v + transpose(grad_v) - scaled_identity<T, D>(T(2) / T(D) * divergence);
    return {f, j_new, j_new * (viscosity * deviatoric - scaled_identity<T, D>(p)),
            bulk_modulus * j_new * (power_minus_one + T(1))};
  }

  // c^2 = dp/d(rho) = K/rho0 J^(1 - gamma).
  COPPICE_INLINE T sound_speed(T density, T j) const {
    return std::sqrt(bulk_modulus / density * fast_pow(j, T(1) - gamma));
  }
  COPPICE_INLINE T sound_speed_bound(T density) const { return sound_speed(density, j_min); }
};

}  // namespace coppice::mpm
