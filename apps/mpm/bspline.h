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

// Returns base of a position in cells, x = position / dx; |x| must stay below 2^22, where a float still
// resolves half cells.
template <class T>
COPPICE_INLINE T bspline_base(T x) {
  return std::floor(x - T(0.5));
}

// Sets the weights of the nodes base, base + 1 and base + 2. A node's weight is the product over the axes.
template <class T>
COPPICE_INLINE void bspline_weights(T fx, T (&weight)[kStencilWidth]) {
  const T left = T(1.5) - fx, right = fx - T(0.5);
  weight[0] = T(0.5) * left * left;
  weight[1] = T(0.75) - (fx - T(1)) * (fx - T(1));
  weight[2] = T(0.5) * right * right;
}

// The share of a node's B-spline that is on this side of a wall at any distance from it, in nodes: the
// spline's integral.
COPPICE_INLINE float share_of_node_at(float from_wall) {
  const float away = std::fabs(from_wall), left = max_of(1.5f - away, 0.0f);
  const float beyond = left * left * left * (1.0f / 6.0f);
  const float near = from_wall * (0.75f - from_wall * from_wall * (1.0f / 3.0f));
  return away < 0.5f ? 0.5f + near : from_wall > 0.0f ? 1.0f - beyond : beyond;
}

}  // namespace coppice::mpm
