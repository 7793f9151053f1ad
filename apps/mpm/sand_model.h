// The dry sand of the MPM solver: Drucker-Prager plasticity on a Hencky-strain energy.
//
// Device-clean and branch-free; the functions are those that material_models.h describes for all models.
#pragma once

#include "apps/mpm/hencky_elasticity.h"

namespace coppice::mpm {

// Dry sand, Klar et al. 2016, "Drucker-Prager elastoplasticity for sand animation": elasticity in the Hencky
// strain e = ln(sigma), and a yield surface |dev tau| + alpha tr(tau) <= 0 without cohesion, to which stress
// returns along its deviator. Stress-free expansion is stored in the volume correction vc (the scalar, >= 0)
// and must be used up before pressure returns (Tampubolon et al. 2017, "Multi-species simulation of porous
// sand and water mixtures"). The friction angle is constant: Klar's hardening of it is left out.
//
// In the plane the surface is Mohr and Coulomb's. In space alpha depends on the Lode angle as Matsuoka and
// Nakai's criterion has it, I1 I2 / I3 = k (Matsuoka and Nakai 1974, "Stress-deformation and strength
// characteristics of soil under three different principal stresses"; in closed form after Lagioia and
// Panteghini 2016, "On the existence of a unique class of yield and failure criteria..."). Its k is such that
// sand in plane flow, where the middle stress is the mean of the others, yields at the friction angle, as in
// the plane. The paper's cone through the edge of triaxial compression yields there at 55 degrees for 35. In
// triaxial compression this sand shows sin(phi_c) = sqrt(3) sin(phi) / sqrt(4 - sin(phi)^2): 31.2 degrees for
// 35, as real sands show some degrees less there than in plane strain.
template <class T, int D>
struct Sand {
  static constexpr MaterialKind kKind = MaterialKind::kSand;
  static constexpr bool kUsesDeformationGradient = true;
  static constexpr bool kUsesScalar = true;
  static constexpr bool kUsesDensity = false;
  static constexpr const char* kScalarName = "volume correction";
  static constexpr T kInitialScalar = T(0);

  T mu, lambda;   // Pa
  T alpha;        // slope of the yield surface in plane flow
  T lode = T(0);  // 0 to 1: how much it depends on the Lode angle, in 3-D
  T vc_max = T(1);

  static Sand from_young(T young_pa, T poisson, T friction_angle_rad) {
    const LameConstants<T> l = lame_constants(young_pa, poisson);
    const T s = std::sin(friction_angle_rad);
    Sand sand{};
    sand.mu = l.mu;
    sand.lambda = l.lambda;
    sand.alpha = s * (D == 2 ? std::sqrt(T(0.5)) : std::sqrt(T(2)) / T(3));
    sand.lode = D == 2 ? T(0) : s * (T(9) - T(3) * s * s) / T(6);  // k sin(phi) / (k - 3)
    return sand;
  }

  // The surface's slope where the deviator of the strain has this direction, a unit vector.
  COPPICE_INLINE T slope(SmallVec<T, D> direction) const {
    if constexpr (D == 2) {
      return alpha;
    } else {
      // cos(3 theta) = -3 sqrt(6) times the product, compression being positive there.
      const T kCosine = T(7.3484692283495345) * product(direction);
      return alpha * T(0.86602540378443865) / fast_cos_third(lode * kCosine);
    }
  }

  // The strain e = ln(sigma) + vc/D returned to the surface along its deviator, or to the tip under
  // expansion.
  COPPICE_INLINE SmallVec<T, D> return_map(SmallVec<T, D> strain, T& vc) const {
    const T tr = vc + sum(strain);
    const T mean = tr * (T(1) / T(D));
    const T lift = vc * (T(1) / T(D));
    T n2 = T(0);
    SmallVec<T, D> deviator{};
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      deviator.v[i] = strain.v[i] + lift - mean;
      n2 = deviator.v[i] * deviator.v[i] + n2;
    }
    const T norm = std::sqrt(n2);
    const T inverse = T(1) / max_of(norm, T(1e-20));
    const T excess = norm + (T(D) * lambda + T(2) * mu) / (T(2) * mu) * tr * slope(inverse * deviator);
    const T back = max_of(excess, T(0)) * inverse;
    const bool expands = tr >= T(0);
    COPPICE_UNROLL for (int i = 0; i < D; ++i) {
      strain.v[i] = expands ? T(0) : strain.v[i] + lift - back * deviator.v[i];
    }
    vc = expands ? min_of(tr, vc_max) : T(0);
    return strain;
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f_trial, T vc) const {
    project_hencky(*this, left_stretch(f_trial), f_trial, vc);
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
    const SmallVec<T, D> tau = hencky_stress(project_hencky(*this, d, f_new, vc), mu, lambda);
    return {f_new, vc, conjugate_diagonal(d.u, tau), hencky_wave_modulus(tau, mu, lambda)};
  }

  COPPICE_INLINE T sound_speed(T density, T) const { return std::sqrt((lambda + T(2) * mu) / density); }
  COPPICE_INLINE T sound_speed_bound(T density) const { return sound_speed(density, T(0)); }
};

}  // namespace coppice::mpm
