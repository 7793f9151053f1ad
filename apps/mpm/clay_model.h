// The clay and mud of the MPM solver: von Mises plasticity, with or without viscosity, on a Hencky-strain
// energy.
//
// Device-clean and branch-free; the functions are those that material_models.h describes for all models.
#pragma once

#include "apps/mpm/hencky_elasticity.h"

namespace coppice::mpm {

// Material that shears off at a stress of its own, whatever presses on it: clay that is not drained, and mud,
// which flows slowly beyond that stress. The yield surface is von Mises', |dev tau| <= sqrt(2) yield, `yield`
// being the shear stress at which it shears off (de Souza Neto, Peric, Owen 2008, "Computational Methods for
// Plasticity", ch. 7, for the return in Hencky strains). Beyond it the shear stress is yield + viscosity
// (rate of shear), Bingham's fluid as overstress after Perzyna; the return is implicit, so that no viscosity
// shortens the step. Mean tension is borne up to `yield`: what is torn further comes apart, and that volume
// is stored in the volume correction vc (the scalar, >= 0), which must be used up before pressure returns, as
// sand's.
template <class T, int D>
struct Clay {
  static constexpr MaterialKind kKind = MaterialKind::kClay;
  static constexpr bool kUsesDeformationGradient = true;
  static constexpr bool kUsesScalar = true;
  static constexpr bool kUsesDensity = false;
  static constexpr const char* kScalarName = "volume correction";
  static constexpr T kInitialScalar = T(0);

  T mu, lambda;        // Pa
  T yield;             // Pa, in shear
  T viscosity = T(0);  // Pa s, beyond the yield stress
  T vc_max = T(1);

  static constexpr Clay from_young(T young_pa, T poisson, T yield_pa) {
    const LameConstants<T> l = lame_constants(young_pa, poisson);
    Clay clay{};
    clay.mu = l.mu;
    clay.lambda = l.lambda;
    clay.yield = yield_pa;
    return clay;
  }

  // The strain e = ln(sigma) + vc/D brought back toward the surface in dt, and to the most tension.
  COPPICE_INLINE SmallVec<T, D> return_map(SmallVec<T, D> strain, T& vc, T dt) const {
    const T tr = vc + sum(strain), lift = vc * (T(1) / T(D)), mean = tr * (T(1) / T(D));
    T n2 = T(0);
    SmallVec<T, D> deviator{};
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      deviator.v[i] = strain.v[i] + lift - mean;
      n2 = deviator.v[i] * deviator.v[i] + n2;
    }
    const T norm = std::sqrt(n2);
    const T excess = max_of(norm - yield * T(0.70710678118654752) / mu, T(0));
    // The rate of shear is sqrt(2) times the strain that goes per time.
    const T share = mu * dt / (mu * dt + viscosity);
    const T back = excess * (viscosity > T(0) ? share : T(1)) / max_of(norm, T(1e-20));
    const T most = yield / (lambda + T(2) / T(D) * mu);
    const T torn = max_of(tr - most, T(0));
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      strain.v[i] = strain.v[i] + lift - back * deviator.v[i] - torn * (T(1) / T(D));
    }
    vc = min_of(torn, vc_max);
    return strain;
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f_trial, T vc) const {
    Clay ideal = *this;
    ideal.viscosity = T(0);
    project_hencky(ideal, left_stretch(f_trial), f_trial, vc, T(1));
    return {f_trial, vc};
  }

  COPPICE_INLINE SmallMat<T, D> kirchhoff_stress(SmallMat<T, D> f, T) const {
    const LeftStretch<T, D> d = left_stretch(f);
    return conjugate_diagonal(d.u, hencky_stress(hencky_strain(d.sigma), mu, lambda));
  }
  COPPICE_INLINE T energy(SmallMat<T, D> f, T) const {
    return hencky_energy(hencky_strain(left_stretch(f).sigma), mu, lambda);
  }

  COPPICE_INLINE MaterialResponse<T, D> advance(SmallMat<T, D> f, T vc, SmallMat<T, D> grad_v, T dt) const {
    SmallMat<T, D> f_new = trial_deformation(f, grad_v, dt);
    const LeftStretch<T, D> d = left_stretch(f_new);
    const SmallVec<T, D> tau = hencky_stress(project_hencky(*this, d, f_new, vc, dt), mu, lambda);
    return {f_new, vc, conjugate_diagonal(d.u, tau), hencky_wave_modulus(tau, mu, lambda)};
  }

  COPPICE_INLINE T sound_speed(T density, T) const { return std::sqrt((lambda + T(2) * mu) / density); }
  COPPICE_INLINE T sound_speed_bound(T density) const { return sound_speed(density, T(0)); }
};

}  // namespace coppice::mpm
