// A particle gives momentum and mass to the nodes of its stencil.
//
// Device-clean.
#pragma once
#include "apps/mpm/particle_tile.h"

namespace coppice::mpm {

// All particles of a group share this. It is read once: a store to the tile may change anything in memory.
struct Scattered {
  float mass;     // kg
  float push;     // -dt V 4/dx^2
  float counted;  // goes to the nodes' fourth number: the mass, or the share of a cell
};
template <int D>
COPPICE_INLINE Scattered scattered(const StepArguments<D>& a, const Group<D>& group) {
  return {group.mass, -a.dt * group.volume * 4.0f * a.inv_dx * a.inv_dx, group.mass};
}
// The same for the nodes' second values: no forces, and volume instead of mass.
template <int D>
COPPICE_INLINE Scattered scattered_before(const Group<D>& group) {
  return {group.mass, 0.0f, group.cell_share};
}

// A particle adds to a node its weight times m v + (m C - dt V 4/dx^2 tau)(x_node - x_p), and its mass.
template <int D>
struct Given {
  SmallVec<float, D> momentum;
  SmallMat<float, D> affine;  // (component, axis): momentum per cell of distance
};
template <int D>
COPPICE_INLINE Given<D> given(const StepArguments<D>& a, const Scattered& group, const Particle& p) {
  Given<D> g{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    g.momentum.v[k] = group.mass * p[Attribute<D>::kVelocity + k];
    COPPICE_UNROLL
    for (int axis = 0; axis < D; ++axis)
      g.affine(k, axis) =
          (group.mass * affine_at<D>(p, k, axis) + group.push * stress_at<D>(p, k, axis)) * a.dx;
  }
  return g;
}

}  // namespace coppice::mpm
