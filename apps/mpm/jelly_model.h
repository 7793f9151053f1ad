// The jelly of the MPM solver: compressible neo-Hookean elasticity.
//
// Device-clean and branch-free; the functions are those that material_models.h describes for all models.
#pragma once

#include "apps/mpm/material_common.h"

namespace coppice::mpm {

// Principal Kirchhoff stresses of the compressible neo-Hookean energy mu/2 (sum s_i^2 - D) - mu ln J +
// lambda/2 (ln J)^2, Bonet and Wood, "Nonlinear Continuum Mechanics for Finite Element Analysis", 2nd
// edition, 6.4.3: tau_i = mu (s_i^2 - 1) + lambda ln J.
template <class T, int D>
COPPICE_INLINE SmallVec<T, D> neo_hookean_stress(SmallVec<T, D> sigma, T mu, T lambda) {
  const T volumetric = lambda * fast_log(product(sigma));
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    sigma.v[i] = mu * (sigma.v[i] - T(1)) * (sigma.v[i] + T(1)) + volumetric;
  }
  return sigma;
}

template <class T, int D>
COPPICE_INLINE T neo_hookean_energy(SmallVec<T, D> sigma, T mu, T lambda) {
  const T log_j = fast_log(product(sigma));
  T sum = T(0);
  COPPICE_UNROLL for (int i = 0; i < D; ++i) sum += (sigma.v[i] - T(1)) * (sigma.v[i] + T(1));
  return T(0.5) * mu * sum - mu * log_j + T(0.5) * lambda * log_j * log_j;
}

// s_i^2 d^2 psi / d s_i^2 of the same energy, its largest over i: mu (s_i^2 + 1) + lambda (1 - ln J), of
// which a swollen body's second part is left out.
template <class T, int D>
COPPICE_INLINE T neo_hookean_wave_modulus(SmallVec<T, D> sigma, T mu, T lambda) {
  T largest = sigma.v[0] * sigma.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) largest = max_of(sigma.v[i] * sigma.v[i], largest);
  return mu * (largest + T(1)) + lambda * max_of(T(1) - fast_log(product(sigma)), T(0));
}

// Neo-Hookean elasticity. The stress grows without bound as an element is flattened, so that it never stays
// flat: where s goes to 0 a Kirchhoff stress of fixed-corotated elasticity goes to 0, too. A step that turns
// an element inside out is taken back to the shape on this side: no later stress could turn it, since all of
// them stretch it.
template <class T, int D>
struct Jelly {
  static constexpr MaterialKind kKind = MaterialKind::kJelly;
  static constexpr bool kUsesDeformationGradient = true;
  static constexpr bool kUsesScalar = false;
  static constexpr bool kUsesDensity = false;
  static constexpr const char* kScalarName = "unused";
  static constexpr T kInitialScalar = T(0);
  static constexpr T kLeastSigma = T(1e-3);

  T mu, lambda;  // Pa

  static constexpr Jelly from_young(T young_pa, T poisson) {
    const LameConstants<T> l = lame_constants(young_pa, poisson);
    return {l.mu, l.lambda};
  }

  // The singular values, all of them positive; f becomes the state that has them.
  COPPICE_INLINE SmallVec<T, D> turn_right_side_out(LeftStretch<T, D> d, SmallMat<T, D>& f) const {
    SmallVec<T, D> positive{}, ratio_minus_one{};
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      const T s = d.sigma.v[i];
      positive.v[i] = max_of(std::fabs(s), kLeastSigma);
      const T divisor = std::copysign(max_of(std::fabs(s), T(1e-2) * kLeastSigma), s);
      ratio_minus_one.v[i] = (positive.v[i] - s) / divisor;
    }
    f = multiply_add(conjugate_diagonal(d.u, ratio_minus_one), f, f);
    return positive;
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f_trial, T scalar) const {
    turn_right_side_out(left_stretch(f_trial), f_trial);
    return {f_trial, scalar};
  }

  COPPICE_INLINE SmallMat<T, D> kirchhoff_stress(SmallMat<T, D> f, T) const {
    const LeftStretch<T, D> d = left_stretch(f);
    return conjugate_diagonal(d.u, neo_hookean_stress(turn_right_side_out(d, f), mu, lambda));
  }

  COPPICE_INLINE T energy(SmallMat<T, D> f, T) const {
    const LeftStretch<T, D> d = left_stretch(f);
    return neo_hookean_energy(turn_right_side_out(d, f), mu, lambda);
  }

  COPPICE_INLINE MaterialResponse<T, D> advance(SmallMat<T, D> f, T scalar, SmallMat<T, D> grad_v,
                                                T dt) const {
    SmallMat<T, D> f_new = trial_deformation(f, grad_v, dt);
    const LeftStretch<T, D> d = left_stretch(f_new);
    const SmallVec<T, D> sigma = turn_right_side_out(d, f_new);
    return {f_new, scalar, conjugate_diagonal(d.u, neo_hookean_stress(sigma, mu, lambda)),
            neo_hookean_wave_modulus(sigma, mu, lambda)};
  }

  COPPICE_INLINE T sound_speed(T density, T) const { return std::sqrt((lambda + T(2) * mu) / density); }
  COPPICE_INLINE T sound_speed_bound(T density) const { return sound_speed(density, T(0)); }
};

}  // namespace coppice::mpm
