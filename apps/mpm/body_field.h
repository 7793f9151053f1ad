// Computes from particles how full the grid's nodes are of one material, and which of them a body
// encloses.
//
// Device-clean.
#pragma once
#include <cmath>

#include "apps/mpm/bspline.h"
#include "apps/mpm/solver_types.h"

namespace coppice::mpm {

// A value that is 1 inside of the material as its emitters fill it.
struct BodyShare {
  MaterialKind kind;
  float inv_dx, per_cell;  // 1/m; 1 / the cell's volume, 1/m^3
  std::int32_t cells[3];   // of the domain; its walls are nodes kPad and kPad + cells
  float high_wall[3];      // or, where these differ, the second are between nodes, so many nodes from node 0
};

struct BodyStencil {
  std::int32_t base[3];
  float w[3][3];
};

// m to nodes, in the domain: what is not finite or elsewhere is at a wall.
COPPICE_INLINE float node_position(const ParticleArrays& p, std::int64_t i, const BodyShare& body, int axis) {
  const float x = p.base[(Attribute<3>::kPosition + axis) * p.stride + i] * body.inv_dx;
  return clamp_to(x, static_cast<float>(kPad), body.high_wall[axis]);
}

// Returns the quadratic B-splines of a particle.
COPPICE_INLINE BodyStencil body_stencil(const ParticleArrays& p, std::int64_t i, const BodyShare& body) {
  BodyStencil s;
  COPPICE_UNROLL
  for (int axis = 0; axis < 3; ++axis) {
    const float x = node_position(p, i, body, axis);
    const float base = bspline_base(x);
    s.base[axis] = static_cast<std::int32_t>(base);
    bspline_weights(x - base, s.w[axis]);
  }
  return s;
}

COPPICE_INLINE const Group<3>& group_of(const ParticleArrays& p, const Group<3>* groups, std::int64_t i) {
  return groups[static_cast<int>(p.base[Attribute<3>::kGroup * p.stride + i])];
}

COPPICE_INLINE bool is_between_nodes(const BodyShare& body, int axis) {
  return body.high_wall[axis] != static_cast<float>(kPad + body.cells[axis]);
}

// Mirrors a node that lies beyond a wall at a node: returns the node that is as far before it.
COPPICE_INLINE std::int32_t node_inside(const BodyShare& body, int axis, std::int32_t node) {
  const std::int32_t low = kPad, high = kPad + body.cells[axis];
  if (node < low) return 2 * low - node;
  return node > high && !is_between_nodes(body, axis) ? 2 * high - node : node;
}

// Activates the leaves of 8^3 nodes that the particle's share goes to.
template <class Topology, class Item>
COPPICE_INLINE void activate_body_leaves(const Topology& shown, const Item& item, const ParticleArrays& p,
                                         const Group<3>* groups, const BodyShare& body) {
  if (group_of(p, groups, item.index).kind != body.kind) return;
  const BodyStencil s = body_stencil(p, item.index, body);
  std::int32_t first[3], steps[3];
  COPPICE_UNROLL
  for (int axis = 0; axis < 3; ++axis) {
    std::int32_t low = s.base[axis] + 2, high = s.base[axis];
    for (int k = 0; k < 3; ++k) {
      const std::int32_t node = node_inside(body, axis, s.base[axis] + k);
      low = node < low ? node : low;
      high = node > high ? node : high;
    }
    first[axis] = low;
    steps[axis] = (low >> 3) == (high >> 3) ? 1 : 2;
  }
  for (int ix = 0; ix < steps[0]; ++ix)
    for (int iy = 0; iy < steps[1]; ++iy)
      for (int iz = 0; iz < steps[2]; ++iz)
        shown.activate(item, {first[0] + 8 * ix, first[1] + 8 * iy, first[2] + 8 * iz});
}

// Adds the particle's share to the nodes around it; what would go behind a wall goes to the node as far
// before it, so that a body that rests against a wall is as full there as inside. Nodes beside a wall between
// nodes get as much more as the wall takes of their B-splines.
template <class Field, class Item>
COPPICE_INLINE void add_body_share(const Field& shown, const Item& item, const ParticleArrays& p,
                                   const Group<3>* groups, const BodyShare& body) {
  const Group<3>& group = group_of(p, groups, item.index);
  if (group.kind != body.kind) return;
  const BodyStencil s = body_stencil(p, item.index, body);
  const float amount = group.volume * body.per_cell;
  const auto inside = [&](int axis, int k) { return node_inside(body, axis, s.base[axis] + k); };
  // The node in a wall stands for itself and for its image.
  const auto weight = [&](int axis, int k) {
    const std::int32_t node = inside(axis, k);
    if (is_between_nodes(body, axis) && node != kPad)
      return s.w[axis][k] /
             max_of(share_of_node_at(body.high_wall[axis] - static_cast<float>(node)), 1.0f / 48.0f);
    return node == kPad || node == kPad + body.cells[axis] ? 2 * s.w[axis][k] : s.w[axis][k];
  };
  for (int ix = 0; ix < 3; ++ix) {
    for (int iy = 0; iy < 3; ++iy) {
      const float w_xy = amount * weight(0, ix) * weight(1, iy);
      for (int iz = 0; iz < 3; ++iz)
        shown.add(item, {inside(0, ix), inside(1, iy), inside(2, iz)}, w_xy * weight(2, iz));
    }
  }
}

// Returns whether the particle is in the body, whose surface is where the field, trilinear between nodes,
// is `threshold`. A particle also counts that is so near to the surface that it would stick out of it as
// a bump: above half of that value, in a cell that the surface passes. Where there is no surface, as in
// sheets of one layer, none is.
template <class Field, class Item>
COPPICE_INLINE bool is_enclosed(const Field& shown, const Item& item, const ParticleArrays& p,
                                const Group<3>* groups, const BodyShare& body, float threshold) {
  if (group_of(p, groups, item.index).kind != body.kind) return false;
  std::int32_t low[3];
  float part[3];
  COPPICE_UNROLL
  for (int axis = 0; axis < 3; ++axis) {
    const float x = node_position(p, item.index, body, axis);
    low[axis] = static_cast<std::int32_t>(x);
    part[axis] = x - static_cast<float>(low[axis]);
  }
  float sum = 0, most = 0;
  for (int corner = 0; corner < 8; ++corner) {
    float weight = 1;
    std::int32_t node[3];
    COPPICE_UNROLL
    for (int axis = 0; axis < 3; ++axis) {
      const int step = corner >> axis & 1;
      node[axis] = low[axis] + step;
      weight *= step != 0 ? part[axis] : 1.0f - part[axis];
    }
    const float value = shown.at(item, {node[0], node[1], node[2]});
    sum += weight * value;
    most = value > most ? value : most;
  }
  return sum >= 0.5f * threshold && most >= threshold;
}

}  // namespace coppice::mpm
