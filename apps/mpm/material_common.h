// The solver's constitutive models share this: their state, their answer, elastic constants and the trial
// state.
//
// Device-clean. The models' common functions are described in material_models.h.
#pragma once

#include "apps/mpm/fast_math.h"
#include "apps/mpm/mpm_types.h"
#include "apps/mpm/svd.h"

namespace coppice::mpm {

template <class T, int D>
struct MaterialState {
  SmallMat<T, D> f;
  T scalar;
};

template <class T, int D>
struct MaterialResponse {
  SmallMat<T, D> f;
  T scalar;
  SmallMat<T, D> tau;  // Kirchhoff stress, Pa
  T wave_modulus;      // Pa; sqrt(wave_modulus / undeformed density) bounds the P-wave speed in the current
                       // state, m/s
};

template <class T>
struct LameConstants {
  T mu;      // Pa
  T lambda;  // Pa
};

// Young's modulus in Pa, Poisson's ratio in (-1, 0.5).
template <class T>
COPPICE_INLINE constexpr LameConstants<T> lame_constants(T young_pa, T poisson) {
  return {young_pa / (T(2) * (T(1) + poisson)),
          young_pa * poisson / ((T(1) + poisson) * (T(1) - T(2) * poisson))};
}

// F after dt with the velocity gradient grad_v (APIC's C), 1/s: (I + dt C) F.
template <class T, int D>
COPPICE_INLINE SmallMat<T, D> trial_deformation(SmallMat<T, D> f, SmallMat<T, D> grad_v, T dt) {
  return multiply_add(dt * grad_v, f, f);
}

template <class T, int D>
COPPICE_INLINE T product(SmallVec<T, D> a) {
  T p = a.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) p *= a.v[i];
  return p;
}

}  // namespace coppice::mpm
