// The solver's constitutive models: elastic jelly, snow, weakly compressible water and dry sand, in 2-D
// (plane strain) and 3-D.
//
// Device-clean and branch-free. All four models have the same functions, so that a kernel is written once and
// picks the model per emitter:
// - advance(F, scalar, grad_v, dt): one particle's step; trial state, return mapping, stress after it;
// - project(F_trial, scalar): the return mapping alone;
// - kirchhoff_stress(F, scalar): tau = J (Cauchy stress), Pa; the grid force is -V0 tau grad(w);
// - sound_speed(density, scalar): P-wave speed at rest, m/s; density is the undeformed one, kg/m^3;
// - sound_speed_bound(density): the same over every value the scalar can take.
//
// F is the elastic deformation gradient; `scalar` is one number per particle whose meaning kScalarName states
// and that starts at kInitialScalar. A model without F (kUsesDeformationGradient false) hands F back
// untouched.
//
// Plastic models return F + U diag(r - 1) U^T F with r = sigma_new / sigma: a state inside the yield surface
// comes back bit for bit, so that elastic motion gathers no error from decompositions.
#pragma once

#include "apps/mpm/material_common.h"
#include "apps/mpm/sand_model.h"

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

// s_i^2 d^2 psi / d s_i^2 of the same energy, its largest over i: 2 mu s_i^2 + lambda J^2.
template <class T, int D>
COPPICE_INLINE T fixed_corotated_wave_modulus(SmallVec<T, D> sigma, T mu, T lambda) {
  const T j = product(sigma);
  T largest = sigma.v[0] * sigma.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) largest = max_of(sigma.v[i] * sigma.v[i], largest);
  return T(2) * mu * largest + lambda * j * j;
}

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

// Weakly compressible water: Tait's equation of state p = K/gamma (J^-gamma - 1) (Monaghan 1994, "Simulating
// free surface flows with SPH"), with an optional Newtonian viscosity, Cauchy stress 2 eta dev(sym grad_v).
// The scalar is J, clamped to [j_min, j_max]: within it |p| <= K/gamma (j_min^-gamma - 1), whatever the
// motion. J follows the divergence of the velocity, whose errors would add up: a pool at rest lost a fifth of
// its depth in 20 s. So it is drawn to the inverse of the density that the grid has there, in a time that a
// wave takes for a few cells. `tension` scales negative pressure: 1 keeps the equation of state, 0 lets a
// stretched fluid fall apart instead of pulling.
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
  T relaxation = T(0);  // 1/s, of J to what the density around says

  static constexpr Water from_bulk_modulus(T bulk_modulus_pa) {
    Water water{};
    water.bulk_modulus = bulk_modulus_pa;
    return water;
  }

  COPPICE_INLINE T pressure(T j) const {
    const T p = bulk_modulus / gamma * fast_expm1(-gamma * fast_log(j));
    return p < T(0) ? tension * p : p;
  }

  COPPICE_INLINE MaterialState<T, D> project(SmallMat<T, D> f, T j_trial) const {
    return {f, clamp_to(j_trial, j_min, j_max)};
  }

  // The elastic part alone: the viscous part depends on the velocity gradient and is added by advance.
  COPPICE_INLINE SmallMat<T, D> kirchhoff_stress(SmallMat<T, D>, T j) const {
    return scaled_identity<T, D>(-j * pressure(j));
  }

  // `density` is that of the space around the particle, relative to the one at rest.
  COPPICE_INLINE MaterialResponse<T, D> advance(SmallMat<T, D> f, T j, SmallMat<T, D> grad_v, T dt,
                                                T density = T(1)) const {
    const T divergence = trace(grad_v);
    const T j_trial = j + j * (dt * divergence),
            j_seen = clamp_to(T(1) / max_of(density, T(0.1)), j_min, j_max);
    const T j_new = clamp_to(j_trial + min_of(relaxation * dt, T(1)) * (j_seen - j_trial), j_min, j_max);
    const T power_minus_one = fast_expm1(-gamma * fast_log(j_new));  // J^-gamma - 1
    T p = bulk_modulus / gamma * power_minus_one;
    p = p < T(0) ? tension * p : p;
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
