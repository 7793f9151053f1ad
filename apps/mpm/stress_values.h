// Values of a particle's stress and strain for output.
//
// Device-clean. Symmetric matrices have their upper triangle alone, row by row: xx xy xz yy yz zz, or xx xy
// yy in 2-D, as in Attribute::kStress.
#pragma once
#include <cmath>

#include "apps/mpm/mpm_types.h"

namespace coppice::mpm {

template <int D>
inline constexpr int kSymmetric = D*(D + 1) / 2;

template <int D>
struct SymmetricMat {
  float m[kSymmetric<D>];
};

// Returns minus the mean of the diagonal.
template <int D>
COPPICE_INLINE float pressure_of(SymmetricMat<D> s) {
  return D == 3 ? -(s.m[0] + s.m[3] + s.m[kSymmetric<D> - 1]) / 3.0f : -0.5f * (s.m[0] + s.m[2]);
}

// Returns von Mises' equivalent stress, sqrt(3/2 dev:dev); in 2-D that of plane strain, in which the stress
// across the plane is the mean of those in it.
template <int D>
COPPICE_INLINE float von_mises_of(SymmetricMat<D> s) {
  if constexpr (D == 2) {
    const float difference = s.m[0] - s.m[2];
    return std::sqrt(0.75f * difference * difference + 3.0f * s.m[1] * s.m[1]);
  } else {
    const float a = s.m[0] - s.m[3], b = s.m[3] - s.m[5], c = s.m[5] - s.m[0];
    const float shear = s.m[1] * s.m[1] + s.m[2] * s.m[2] + s.m[4] * s.m[4];
    return std::sqrt(0.5f * (a * a + b * b + c * c) + 3.0f * shear);
  }
}

// Returns Green and Lagrange's strain of a deformation gradient, (F^T F - 1) / 2.
template <int D>
COPPICE_INLINE SymmetricMat<D> green_lagrange(SmallMat<float, D> f) {
  const SmallMat<float, D> c = transpose(f) * f;
  SymmetricMat<D> e{};
  int n = 0;
  for (int row = 0; row < D; ++row) {
    for (int column = row; column < D; ++column)
      e.m[n++] = 0.5f * (c.m[row * D + column] - (row == column ? 1.0f : 0.0f));
  }
  return e;
}

}  // namespace coppice::mpm
