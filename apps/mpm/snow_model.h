// The snow of the MPM solver: fixed-corotated elasticity that yields, breaks and hardens.
//
// Device-clean and branch-free; the functions are those that material_models.h describes for all models.
#pragma once

#include "apps/mpm/material_common.h"

namespace coppice::mpm {

// Principal Kirchhoff stresses of the fixed-corotated energy mu sum (s_i - 1)^2 + lambda/2 (J - 1)^2,
// Stomakhin et al. 2012, "Energetically Consistent Invertible Elasticity": tau_i = 2 mu s_i (s_i - 1) +
// lambda J (J - 1).
template <class T, int D>
COPPICE_INLINE SmallVec<T, D> fixed_corotated_stress(SmallVec<T, D> sigma, T mu, T lambda) {
  const T j = product(sigma);
  const T volumetric = lambda * j * (j - T(1));
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    sigma.v[i] = T(2) * mu * sigma.v[i] * (sigma.v[i] - T(1)) + volumetric;
  }
  return sigma;
}

template <class T, int D>
COPPICE_INLINE T fixed_corotated_energy(SmallVec<T, D> sigma, T mu, T lambda) {
  const T volume = product(sigma) - T(1);
  T sum = T(0);
  COPPICE_UNROLL for (int i = 0; i < D; ++i) sum += (sigma.v[i] - T(1)) * (sigma.v[i] - T(1));
  return mu * sum + T(0.5) * lambda * volume * volume;
}

// s_i^2 d^2 psi / d s_i^2 of the same energy, its largest over i: 2 mu s_i^2 + lambda J^2.
template <class T, int D>
COPPICE_INLINE T fixed_corotated_wave_modulus(SmallVec<T, D> sigma, T mu, T lambda) {
  const T j = product(sigma);
  T largest = sigma.v[0] * sigma.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) largest = max_of(sigma.v[i] * sigma.v[i], largest);
  return T(2) * mu * largest + lambda * j * j;
}

// Snow, Stomakhin et al. 2013, "A material point method for snow simulation": the elastic singular values are
// clamped to [1 - critical_compression, 1 + critical_stretch]; what is cut off goes to the plastic volume
// ratio Jp (the scalar), which hardens the fixed-corotated moduli by h = exp(hardening (1 - Jp)). Jp and h
// are clamped to the stated ranges, which the paper leaves open; hardening_max thereby bounds the sound
// speed.
template <class T, int D>
struct Snow {
  static constexpr MaterialKind kKind = MaterialKind::kSnow;
  static constexpr bool kUsesDeformationGradient = true;
  static constexpr bool kUsesScalar = true;
  static constexpr bool kUsesDensity = false;
  static constexpr const char* kScalarName = "plastic volume ratio";
  static constexpr T kInitialScalar = T(1);
  static constexpr T kLeastSigma = T(1e-3);  // a flatter trial state is stretched back over several steps

  T mu, lambda;  // Pa, at Jp = 1
  T hardening = T(10);
  T critical_compression = T(0.025);
  T critical_stretch = T(0.0075);
  T jp_min = T(0.6), jp_max = T(20);
  T hardening_min = T(0), hardening_max = T(20);

  static constexpr Snow from_young(T young_pa, T poisson) {
    const LameConstants<T> l = lame_constants(young_pa, poisson);
    Snow snow{};
    snow.mu = l.mu;
    snow.lambda = l.lambda;
    return snow;
  }

  COPPICE_INLINE T hardness(T jp) const {
    return clamp_to(fast_exp(hardening * (T(1) - jp)), hardening_min, hardening_max);
  }

  // The projected singular values; f and jp become the projected state.
  COPPICE_INLINE SmallVec<T, D> clamp_stretch(LeftStretch<T, D> d, SmallMat<T, D>& f, T& jp) const {
    SmallVec<T, D> clamped{};
    SmallVec<T, D> ratio_minus_one{};
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      const T s = d.sigma.v[i];
      clamped.v[i] = clamp_to(s, T(1) - critical_compression, T(1) + critical_stretch);
      const T divisor = std::copysign(max_of(std::fabs(s), kLeastSigma), s);
      ratio_minus_one.v[i] = (clamped.v[i] - s) / divisor;
    }
    jp = clamp_to(jp * product(d.sigma) / product(clamped), jp_min, jp_max);
    f = multiply_add(conjugate_diagonal(d.u, ratio_minus_one), f, f);
    return clamped;
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f_trial, T jp) const {
    clamp_stretch(left_stretch(f_trial), f_trial, jp);
    return {f_trial, jp};
  }

  COPPICE_INLINE SmallMat<T, D> kirchhoff_stress(SmallMat<T, D> f, T jp) const {
    const LeftStretch<T, D> d = left_stretch(f);
    const T h = hardness(jp);
    return conjugate_diagonal(d.u, fixed_corotated_stress(d.sigma, h * mu, h * lambda));
  }

  COPPICE_INLINE T energy(SmallMat<T, D> f, T jp) const {
    const T h = hardness(jp);
    return fixed_corotated_energy(left_stretch(f).sigma, h * mu, h * lambda);
  }

  COPPICE_INLINE MaterialResponse<T, D> advance(SmallMat<T, D> f, T jp, SmallMat<T, D> grad_v, T dt) const {
    SmallMat<T, D> f_new = trial_deformation(f, grad_v, dt);
    const LeftStretch<T, D> d = left_stretch(f_new);
    const SmallVec<T, D> sigma = clamp_stretch(d, f_new, jp);
    const T h = hardness(jp);
    return {f_new, jp, conjugate_diagonal(d.u, fixed_corotated_stress(sigma, h * mu, h * lambda)),
            fixed_corotated_wave_modulus(sigma, h * mu, h * lambda)};
  }

  COPPICE_INLINE T sound_speed(T density, T jp) const {
    return std::sqrt(hardness(jp) * (lambda + T(2) * mu) / density);
  }
  COPPICE_INLINE T sound_speed_bound(T density) const { return sound_speed(density, jp_min); }
};

}  // namespace coppice::mpm
