// The dry sand of the MPM solver: Drucker-Prager plasticity on a Hencky-strain energy.
//
// Device-clean and branch-free; the functions are those that material_models.h describes for all models.
#pragma once

#include "apps/mpm/material_common.h"

namespace coppice::mpm {

// Dry sand, Klar et al. 2016, "Drucker-Prager elastoplasticity for sand animation": St. Venant-Kirchhoff
// energy mu tr(e^2) + lambda/2 tr(e)^2 in the Hencky strain e = ln(sigma), so tau_i = 2 mu e_i + lambda
// tr(e), and a cone |dev tau| + alpha tr(tau) <= 0 without cohesion. Stress-free expansion is stored in the
// volume correction vc (the scalar, >= 0) and must be used up before pressure returns (Tampubolon et al.
// 2017, "Multi-species simulation of porous sand and water mixtures"). The friction angle is constant: Klar's
// hardening of it is left out. alpha fits Mohr-Coulomb: on the triaxial compression edge in 3-D (the
// paper's), and exactly in the plane.
template <class T, int D>
struct Sand {
  static constexpr MaterialKind kKind = MaterialKind::kSand;
  static constexpr bool kUsesDeformationGradient = true;
  static constexpr bool kUsesScalar = true;
  static constexpr bool kUsesDensity = false;
  static constexpr const char* kScalarName = "volume correction";
  static constexpr T kInitialScalar = T(0);
  static constexpr T kLeastSigma = T(1e-3);

  T mu, lambda;  // Pa
  T alpha;       // slope of the yield cone
  T vc_max = T(1);

  static Sand from_young(T young_pa, T poisson, T friction_angle_rad) {
    const LameConstants<T> l = lame_constants(young_pa, poisson);
    const T s = std::sin(friction_angle_rad);
    Sand sand{};
    sand.mu = l.mu;
    sand.lambda = l.lambda;
    sand.alpha = D == 2 ? s * std::sqrt(T(0.5)) : std::sqrt(T(2) / T(3)) * T(2) * s / (T(3) - s);
    return sand;
  }

  COPPICE_INLINE SmallVec<T, D> hencky_strain(SmallVec<T, D> sigma) const {
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      sigma.v[i] = fast_log(max_of(std::fabs(sigma.v[i]), kLeastSigma));
    }
    return sigma;
  }

  COPPICE_INLINE SmallVec<T, D> principal_stress(SmallVec<T, D> strain) const {
    T tr = strain.v[0];
    COPPICE_UNROLL for (int i = 1; i < D; ++i) tr += strain.v[i];
    COPPICE_UNROLL for (int i = 0; i < D; ++i) strain.v[i] = T(2) * mu * strain.v[i] + lambda * tr;
    return strain;
  }

  // The strain e = ln(sigma) + vc/D returned to the cone along its deviator, or to the tip under expansion.
  COPPICE_INLINE SmallVec<T, D> return_map(SmallVec<T, D> strain, T& vc) const {
    T tr = vc;
    COPPICE_UNROLL for (int i = 0; i < D; ++i) tr += strain.v[i];
    const T mean = tr * (T(1) / T(D));
    const T lift = vc * (T(1) / T(D));
    T n2 = T(0);
    SmallVec<T, D> deviator{};
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      deviator.v[i] = strain.v[i] + lift - mean;
      n2 = deviator.v[i] * deviator.v[i] + n2;
    }
    const T norm = std::sqrt(n2);
    const T excess = norm + (T(D) * lambda + T(2) * mu) / (T(2) * mu) * tr * alpha;
    const T back = max_of(excess, T(0)) / max_of(norm, T(1e-20));
    const bool expands = tr >= T(0);
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      strain.v[i] = expands ? T(0) : strain.v[i] + lift - back * deviator.v[i];
    }
    vc = expands ? min_of(tr, vc_max) : T(0);
    return strain;
  }

  // The projected strain; f and vc become the projected state.
  COPPICE_INLINE SmallVec<T, D> project_strain(LeftStretch<T, D> d, SmallMat<T, D>& f, T& vc) const {
    const SmallVec<T, D> trial = hencky_strain(d.sigma);
    const SmallVec<T, D> strain = return_map(trial, vc);
    SmallVec<T, D> ratio_minus_one{};
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      const T grown = fast_expm1(strain.v[i] - trial.v[i]);
      ratio_minus_one.v[i] = d.sigma.v[i] < T(0) ? T(-2) - grown : grown;  // an inverted axis is turned back
    }
    f = multiply_add(conjugate_diagonal(d.u, ratio_minus_one), f, f);
    return strain;
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f_trial, T vc) const {
    project_strain(left_stretch(f_trial), f_trial, vc);
    return {f_trial, vc};
  }

  COPPICE_INLINE SmallMat<T, D> kirchhoff_stress(SmallMat<T, D> f, T) const {
    const LeftStretch<T, D> d = left_stretch(f);
    return conjugate_diagonal(d.u, principal_stress(hencky_strain(d.sigma)));
  }

  COPPICE_INLINE MaterialResponse<T, D> advance(SmallMat<T, D> f, T vc, SmallMat<T, D> grad_v, T dt) const {
    SmallMat<T, D> f_new = trial_deformation(f, grad_v, dt);
    const LeftStretch<T, D> d = left_stretch(f_new);
    const SmallVec<T, D> tau = principal_stress(project_strain(d, f_new, vc));
    T least = tau.v[0];
    COPPICE_UNROLL for (int i = 1; i < D; ++i) least = min_of(tau.v[i], least);
    return {f_new, vc, conjugate_diagonal(d.u, tau), lambda + T(2) * mu - least};
  }

  COPPICE_INLINE T sound_speed(T density, T) const { return std::sqrt((lambda + T(2) * mu) / density); }
  COPPICE_INLINE T sound_speed_bound(T density) const { return sound_speed(density, T(0)); }
};

}  // namespace coppice::mpm
