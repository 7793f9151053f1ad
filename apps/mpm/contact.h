// Contact of single particles with moving colliders: how far a particle comes in a step.
//
// Device-clean, pure. Nodes of the grid feel colliders, too (collision.h), but a wall of less than two cells
// has hardly any nodes of its own, and nodes beside one say nothing of where in a cell a particle is. So a
// particle's way through a step is followed in the frame of the collider, which moves from `now` to `next`
// meanwhile: who comes from outside stays outside, on its side, however thin the collider and however fast
// the two. Who was inside already is left alone.
#pragma once

#include "apps/mpm/collision.h"

namespace coppice::mpm {

template <class T, int D>
struct Contact {
  bool is_any;
  SmallVec<T, D> position;  // m, where the particle is at the end of the step
  SmallVec<T, D> normal;    // unit, out of the collider
  SmallVec<T, D> velocity;  // m/s, of the collider there
};

// `gap` (m) is kept from the surface, and so much deeper a particle may be and still count as one outside.
template <class T, int D>
COPPICE_INLINE Contact<T, D> meet(const Sphere<T, D>& now, const Sphere<T, D>& next, SmallVec<T, D> from,
                                  SmallVec<T, D> to, T gap) {
  Contact<T, D> c{false, to, {}, {}};
  const SmallVec<T, D> begin = from - now.center, end = to - next.center, way = end - begin;
  const T within = max_of(next.radius - gap, T(0));
  if (dot(begin, begin) < within * within) return c;
  const T way2 = dot(way, way), toward = -dot(begin, way);
  // Where the way is nearest to the middle; where it goes in, from which it slides on along the surface.
  const T nearest = clamp_to(toward / max_of(way2, T(1e-30)), T(0), T(1));
  const SmallVec<T, D> at = begin + nearest * way;
  const T depth2 = next.radius * next.radius - dot(at, at);
  if (!(depth2 > T(0))) return c;
  const T enters =
      max_of(toward - std::sqrt(max_of(
                          toward * toward + way2 * (next.radius * next.radius - dot(begin, begin)), T(0))),
             T(0)) /
      max_of(way2, T(1e-30));
  const SmallVec<T, D> entry = begin + min_of(enters, T(1)) * way, rest = end - entry;
  const SmallVec<T, D> on = end - (dot(rest, entry) / max_of(dot(entry, entry), T(1e-30))) * entry;
  const T length = std::sqrt(dot(on, on));
  if (!(length > T(1e-12))) return c;
  c.is_any = true;
  c.normal = (T(1) / length) * on;
  const SmallVec<T, D> arm = (next.radius + gap) * c.normal;
  c.position = next.center + arm;
  c.velocity = next.velocity + spin_velocity(next.omega, arm);
  return c;
}

template <class T, int D>
COPPICE_INLINE Contact<T, D> meet(const OrientedBox<T, D>& now, const OrientedBox<T, D>& next,
                                  SmallVec<T, D> from, SmallVec<T, D> to, T gap) {
  Contact<T, D> c{false, to, {}, {}};
  const SmallVec<T, D> begin = transpose(now.world_from_local) * (from - now.center);
  SmallVec<T, D> end = transpose(next.world_from_local) * (to - next.center);
  // The part of the way that lies between each two faces, from 0 to 1; it meets the last face that it passes.
  // 2: it does not come there.
  T enters = T(-1), leaves = T(1);
  int face = -1;
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    const T half = next.half_extent.v[i], side = begin.v[i] < T(0) ? T(-1) : T(1);
    const T a = side * begin.v[i] - half, b = side * end.v[i] - half;  // beyond the face on that side
    if (a >= -gap) {
      const T at = b >= T(0) ? T(2) : a <= T(0) ? T(0) : a / (a - b);
      if (at > enters) enters = at, face = i;
    } else if (b > T(0)) {
      leaves = min_of(leaves, a / (a - b));
    }
    if (b < -T(2) * half) leaves = min_of(leaves, (T(2) * half + a) / (a - b));  // by the other face
  }
  if (face < 0 || enters > leaves) return c;
  c.is_any = true;
  SmallVec<T, D> local_normal{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    const T side = begin.v[i] < T(0) ? T(-1) : T(1);
    local_normal.v[i] = i == face ? side : T(0);
    if (i == face) end.v[i] = side * (next.half_extent.v[i] + gap);
  }
  c.normal = next.world_from_local * local_normal;
  const SmallVec<T, D> arm = next.world_from_local * end;
  c.position = next.center + arm;
  c.velocity = next.velocity + spin_velocity(next.omega, arm);
  return c;
}

template <class T, int D>
COPPICE_INLINE Contact<T, D> meet(const HalfSpace<T, D>& now, const HalfSpace<T, D>& next,
                                  SmallVec<T, D> from, SmallVec<T, D> to, T gap) {
  Contact<T, D> c{false, to, {}, {}};
  const T before = dot(now.normal, from - now.point), after = dot(next.normal, to - next.point);
  if (before < -gap || after >= T(0)) return c;
  c.is_any = true;
  c.normal = next.normal;
  c.position = to + (gap - after) * next.normal;
  c.velocity = next.velocity + spin_velocity(next.omega, c.position - next.point);
  return c;
}

// Returns where the line begin + t way comes into the ball around 0, for t from 0 to 1; 2 where it does not.
template <class T, int D>
COPPICE_INLINE T enters_round(SmallVec<T, D> begin, SmallVec<T, D> way, T radius) {
  const T way2 = dot(way, way), toward = -dot(begin, way), beyond = dot(begin, begin) - radius * radius;
  if (beyond <= T(0)) return T(0);
  const T root2 = toward * toward - way2 * beyond;
  if (!(root2 > T(0)) || toward <= T(0)) return T(2);
  const T at = beyond / (toward + std::sqrt(root2));  // the nearer root, without cancellation
  return at <= T(1) ? at : T(2);
}

// A capsule is the union of two balls and the part of a cylinder between them: the way enters it where it
// enters the first of these. From there it slides on along the surface.
template <class T, int D>
COPPICE_INLINE Contact<T, D> meet(const OrientedCapsule<T, D>& now, const OrientedCapsule<T, D>& next,
                                  SmallVec<T, D> from, SmallVec<T, D> to, T gap) {
  Contact<T, D> c{false, to, {}, {}};
  const SmallVec<T, D> begin = transpose(now.world_from_local) * (from - now.center);
  const SmallVec<T, D> end = transpose(next.world_from_local) * (to - next.center), way = end - begin;
  const SmallVec<T, D> off = from_segment(next, begin);
  const T within = max_of(next.radius - gap, T(0));
  if (dot(off, off) < within * within) return c;
  SmallVec<T, D> below = begin, above = begin, across = begin, way_across = way;
  below.v[1] += next.half_height, above.v[1] -= next.half_height;
  across.v[1] = way_across.v[1] = T(0);
  T enters = min_of(enters_round(below, way, next.radius), enters_round(above, way, next.radius));
  const T side = enters_round(across, way_across, next.radius);
  if (side <= T(1) && std::fabs(begin.v[1] + side * way.v[1]) <= next.half_height)
    enters = min_of(enters, side);
  if (enters > T(1)) return c;
  const SmallVec<T, D> entry = begin + enters * way, rest = end - entry, out = from_segment(next, entry);
  const SmallVec<T, D> on = end - (dot(rest, out) / max_of(dot(out, out), T(1e-30))) * out;
  const SmallVec<T, D> away = from_segment(next, on);
  const T length = std::sqrt(dot(away, away));
  if (!(length > T(1e-12))) return c;
  c.is_any = true;
  const SmallVec<T, D> normal = (T(1) / length) * away;
  c.normal = next.world_from_local * normal;
  const SmallVec<T, D> arm = next.world_from_local * ((on - away) + (next.radius + gap) * normal);
  c.position = next.center + arm;
  c.velocity = next.velocity + spin_velocity(next.omega, arm);
  return c;
}

// Returns where a place goes that a collider takes along on its way from `now` to `next`.
template <class T, int D>
COPPICE_INLINE SmallVec<T, D> carry(const Sphere<T, D>& now, const Sphere<T, D>& next, SmallVec<T, D> x) {
  return x + (next.center - now.center);
}
template <class Solid, class T, int D>
COPPICE_INLINE SmallVec<T, D> carry(const Solid& now, const Solid& next, SmallVec<T, D> x) {
  return next.center + next.world_from_local * (transpose(now.world_from_local) * (x - now.center));
}
// A place beside a plane keeps how far off it is.
template <class T, int D>
COPPICE_INLINE SmallVec<T, D> carry(const HalfSpace<T, D>& now, const HalfSpace<T, D>& next,
                                    SmallVec<T, D> x) {
  return x + (dot(now.normal, x - now.point) - dot(next.normal, x - next.point)) * next.normal;
}

}  // namespace coppice::mpm
