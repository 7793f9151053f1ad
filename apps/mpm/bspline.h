// Quadratic B-spline interpolation between particles and grid nodes.
//
// Device-clean. Grid node i of an axis lies at x = i dx. A particle touches the 3 nodes base .. base + 2 per
// axis, with base = floor(x / dx - 1/2), also for negative x, and fx = x / dx - base in [0.5, 1.5). The
// weights sum to 1, reproduce positions, and have second moment dx^2/4 everywhere, which makes APIC's inertia
// tensor the constant D = dx^2/4 I and MLS-MPM's force a plain product with D^-1 = 4/dx^2 (Hu et al. 2018, "A
// moving least squares material point method with displacement discontinuity and two-way rigid body
// coupling").
#pragma once

#include "apps/mpm/mpm_types.h"

namespace coppice::mpm {

inline constexpr int kStencilWidth = 3;

template <class T, int D>
struct BsplineStencil {
  std::int32_t base[D];
  T fx[D];                     // cells
  T weight[D][kStencilWidth];  // weight[axis][node]; a node's weight is the product over the axes
};

// position in m, inv_dx in 1/m; |position * inv_dx| must stay below 2^22, where a float still resolves half
// cells.
template <class T, int D>
COPPICE_INLINE BsplineStencil<T, D> bspline_stencil(SmallVec<T, D> position, T inv_dx) {
  BsplineStencil<T, D> s{};
  COPPICE_UNROLL for (int a = 0; a < D; ++a) {
    const T x = position.v[a] * inv_dx;
    const T base = std::floor(x - T(0.5));
    const T fx = x - base;
    const T right = fx - T(0.5);
    const T left = T(1.5) - fx;
    s.base[a] = static_cast<std::int32_t>(base);
    s.fx[a] = fx;
    s.weight[a][0] = T(0.5) * left * left;
    s.weight[a][1] = T(0.75) - (fx - T(1)) * (fx - T(1));
    s.weight[a][2] = T(0.5) * right * right;
  }
  return s;
}

// MLS-MPM's D^-1, 1/m^2.
template <class T>
COPPICE_INLINE constexpr T inverse_inertia(T inv_dx) {
  return T(4) * inv_dx * inv_dx;
}

}  // namespace coppice::mpm
