// A signed distance on the nodes of a grid, which is the shape of a mesh collider in its own frame.
//
// Device-clean. Between nodes the distance is trilinear, which is exact for planes, and its gradient is the
// normal. The surface lies two cells of the solver's grid inside of the nodes' bounds at least.
#pragma once
#include <cmath>
#include <cstdint>

#include "apps/mpm/contact.h"

namespace coppice::mpm {

struct DistanceField {
  const float* values;    // f32[nodes[0]][nodes[1]][nodes[2]], m, negative inside
  std::int32_t nodes[3];  // 2 at least
  float low[3];           // m, of node (0, 0, 0) in the collider's frame
  float spacing_m, per_spacing;
};

template <int D>
struct FieldSample {
  float distance;
  SmallVec<float, D> normal;  // unit, out of the solid
};

// Outside of the nodes the distance is a lower bound: the bounds are convex, so that the way to the surface
// makes a right angle at least with the one to them.
COPPICE_INLINE FieldSample<3> sample(const DistanceField& field, SmallVec<float, 3> local) {
  std::int64_t at = 0;
  SmallVec<float, 3> part{}, beyond{};
  bool is_beyond =
      false;  // a difference of these need not be 0 where it should: the product before it is fused
  COPPICE_UNROLL
  for (int k = 0; k < 3; ++k) {
    const float x = (local.v[k] - field.low[k]) * field.per_spacing;
    const float inside = clamp_to(x, 0.0f, static_cast<float>(field.nodes[k] - 1));
    const auto cell = static_cast<std::int32_t>(min_of(inside, static_cast<float>(field.nodes[k] - 2)));
    at = at * field.nodes[k] + cell;
    part.v[k] = inside - static_cast<float>(cell);
    is_beyond = is_beyond | (x < 0.0f) | (x > static_cast<float>(field.nodes[k] - 1));
    beyond.v[k] = (x - inside) * field.spacing_m;
  }
  const std::int64_t y = field.nodes[2], x = y * field.nodes[1];
  const float* v = field.values + at;
  // Along z, then y, then x.
  const float z00 = v[0] + part.v[2] * (v[1] - v[0]), z01 = v[y] + part.v[2] * (v[y + 1] - v[y]);
  const float z10 = v[x] + part.v[2] * (v[x + 1] - v[x]),
              z11 = v[x + y] + part.v[2] * (v[x + y + 1] - v[x + y]);
  const float y0 = z00 + part.v[1] * (z01 - z00), y1 = z10 + part.v[1] * (z11 - z10);
  const float d00 = v[1] - v[0], d01 = v[y + 1] - v[y], d10 = v[x + 1] - v[x], d11 = v[x + y + 1] - v[x + y];
  const float d0 = d00 + part.v[1] * (d01 - d00), d1 = d10 + part.v[1] * (d11 - d10);
  FieldSample<3> s{};
  s.distance = y0 + part.v[0] * (y1 - y0);
  s.normal = {{y1 - y0, z01 - z00 + part.v[0] * ((z11 - z10) - (z01 - z00)), d0 + part.v[0] * (d1 - d0)}};
  const float length2 = dot(s.normal, s.normal), beyond2 = dot(beyond, beyond);
  const bool is_defined = length2 > 1e-12f * field.spacing_m * field.spacing_m;
  const float inverse = 1.0f / std::sqrt(is_defined ? length2 : 1.0f);
  // One of two whole vectors would be one of two addresses, on a GPU of its stack.
  COPPICE_UNROLL
  for (int k = 0; k < 3; ++k) s.normal.v[k] = is_defined ? inverse * s.normal.v[k] : (k == 1 ? 1.0f : 0.0f);
  if (is_beyond) s.distance = std::sqrt(s.distance * s.distance + beyond2);
  return s;
}

// The frame is that of a box, which is around the field; its velocity is that of the collider.
COPPICE_INLINE ColliderSample<float, 3> sample(const DistanceField& field, const OrientedBox<float, 3>& frame,
                                               SmallVec<float, 3> x) {
  const SmallVec<float, 3> arm = x - frame.center;
  const FieldSample<3> s = sample(field, transpose(frame.world_from_local) * arm);
  return {s.distance, frame.world_from_local * s.normal, frame.velocity + spin_velocity(frame.omega, arm)};
}

// Puts a local place out of the solid. Returns whether that worked within a few steps.
COPPICE_INLINE bool put_outside(const DistanceField& field, SmallVec<float, 3>& place, float gap,
                                SmallVec<float, 3>& normal) {
  for (int i = 0; i < 8; ++i) {
    const FieldSample<3> s = sample(field, place);
    normal = s.normal;
    if (s.distance >= 0.5f * gap) return true;
    place = place + (gap - s.distance) * s.normal;
  }
  return false;
}

// Who is deeper than half a cell of the field when the step begins is inside, and left alone; who comes from
// outside is followed along its way by the distance that is free, and slides on from where it enters.
COPPICE_INLINE Contact<float, 3> meet(const DistanceField& field, const OrientedBox<float, 3>& now,
                                      const OrientedBox<float, 3>& next, SmallVec<float, 3> from,
                                      SmallVec<float, 3> to, float gap) {
  Contact<float, 3> c{false, to, {}, {}};
  const SmallVec<float, 3> begin = transpose(now.world_from_local) * (from - now.center);
  const SmallVec<float, 3> end = transpose(next.world_from_local) * (to - next.center), way = end - begin;
  const float length = std::sqrt(dot(way, way)), least = 0.2f * field.spacing_m;
  FieldSample<3> s = sample(field, begin);
  if (s.distance < -0.5f * field.spacing_m || s.distance > length + gap) return c;
  float at = 0.0f;
  while (s.distance > 0.0f && at < length) {
    at = min_of(at + max_of(s.distance, least), length);
    s = sample(field, begin + (at / max_of(length, 1e-30f)) * way);
  }
  if (s.distance > 0.0f) return c;
  // Without its part into the solid, the rest of the way leads along the surface.
  const SmallVec<float, 3> entry = begin + (at / max_of(length, 1e-30f)) * way, rest = end - entry;
  SmallVec<float, 3> place = end - min_of(dot(rest, s.normal), 0.0f) * s.normal, normal = s.normal;
  if (!put_outside(field, place, gap, normal)) {
    place = entry;
    if (!put_outside(field, place, gap, normal)) place = begin, normal = sample(field, begin).normal;
  }
  c.is_any = true;
  c.normal = next.world_from_local * normal;
  const SmallVec<float, 3> arm = next.world_from_local * place;
  c.position = next.center + arm;
  c.velocity = next.velocity + spin_velocity(next.omega, arm);
  return c;
}

}  // namespace coppice::mpm
