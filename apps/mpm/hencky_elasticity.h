// St. Venant-Kirchhoff elasticity in Hencky strains, which sand and clay share: energy mu |e|^2 + lambda/2
// tr(e)^2 per volume, in e = ln(sigma), and so tau_i = 2 mu e_i + lambda tr(e).
//
// Device-clean and branch-free.
#pragma once

#include "apps/mpm/material_common.h"

namespace coppice::mpm {

// Flatter trial states are stretched back over several steps.
template <class T>
inline constexpr T kLeastHenckySigma = T(1e-3);

template <class T, int D>
COPPICE_INLINE T sum(SmallVec<T, D> a) {
  T all = a.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) all += a.v[i];
  return all;
}

template <class T, int D>
COPPICE_INLINE SmallVec<T, D> hencky_strain(SmallVec<T, D> sigma) {
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    sigma.v[i] = fast_log(max_of(std::fabs(sigma.v[i]), kLeastHenckySigma<T>));
  }
  return sigma;
}

template <class T, int D>
COPPICE_INLINE SmallVec<T, D> hencky_stress(SmallVec<T, D> strain, T mu, T lambda) {
  const T tr = sum(strain);
  COPPICE_UNROLL for (int i = 0; i < D; ++i) strain.v[i] = T(2) * mu * strain.v[i] + lambda * tr;
  return strain;
}

template <class T, int D>
COPPICE_INLINE T hencky_energy(SmallVec<T, D> strain, T mu, T lambda) {
  const T tr = sum(strain);
  return mu * dot(strain, strain) + T(0.5) * lambda * tr * tr;
}

// s_i^2 d^2 psi / d s_i^2, its largest over i: lambda + 2 mu - tau_i.
template <class T, int D>
COPPICE_INLINE T hencky_wave_modulus(SmallVec<T, D> tau, T mu, T lambda) {
  T least = tau.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) least = min_of(tau.v[i], least);
  return lambda + T(2) * mu - least;
}

// The strain that a material's return_map() makes of a trial state's; f and its scalar become the projected
// state.
template <class Material, class T, int D, class... Dt>
COPPICE_INLINE SmallVec<T, D> project_hencky(const Material& material, LeftStretch<T, D> d, SmallMat<T, D>& f,
                                             T& scalar, Dt... dt) {
  const SmallVec<T, D> trial = hencky_strain(d.sigma);
  const SmallVec<T, D> strain = material.return_map(trial, scalar, dt...);
  SmallVec<T, D> ratio_minus_one{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    const T grown = fast_expm1(strain.v[i] - trial.v[i]);
    ratio_minus_one.v[i] = d.sigma.v[i] < T(0) ? T(-2) - grown : grown;  // an inverted axis is turned back
  }
  f = multiply_add(conjugate_diagonal(d.u, ratio_minus_one), f, f);
  return strain;
}

}  // namespace coppice::mpm
