// Moving rigid colliders, and what they do to the velocity of a grid node.
//
// Device-clean, branch-free, pure. A collider is evaluated at a point to a ColliderSample (signed distance,
// outward normal, velocity of the collider's material there); where the distance is <= 0 the kernel passes
// the node's velocity through respond_to_collider. Rotation matrices are world_from_local: their columns are
// the local axes in the world.
#pragma once

#include "apps/mpm/mpm_types.h"

namespace coppice::mpm {

template <class T, int D>
struct ColliderSample {
  T distance;               // m, negative inside
  SmallVec<T, D> normal;    // unit, out of the collider
  SmallVec<T, D> velocity;  // m/s
};

// rad/s: one number in the plane, a vector in space.
template <class T, int D>
using AngularVelocity = SmallVec<T, D == 2 ? 1 : 3>;

template <class T>
COPPICE_INLINE SmallVec<T, 2> spin_velocity(SmallVec<T, 1> omega, SmallVec<T, 2> arm) {
  return {{-omega.v[0] * arm.v[1], omega.v[0] * arm.v[0]}};
}
template <class T>
COPPICE_INLINE SmallVec<T, 3> spin_velocity(SmallVec<T, 3> omega, SmallVec<T, 3> arm) {
  return cross(omega, arm);
}

// The half space behind a plane.
template <class T, int D>
struct HalfSpace {
  SmallVec<T, D> point;     // m, on the plane
  SmallVec<T, D> normal;    // unit, out of the solid
  SmallVec<T, D> velocity;  // m/s
  AngularVelocity<T, D> omega;
};

template <class T, int D>
struct Sphere {
  SmallVec<T, D> center;    // m
  T radius;                 // m
  SmallVec<T, D> velocity;  // m/s
  AngularVelocity<T, D> omega;
};

template <class T, int D>
struct OrientedBox {
  SmallVec<T, D> center;            // m
  SmallVec<T, D> half_extent;       // m
  SmallMat<T, D> world_from_local;  // rotation
  SmallVec<T, D> velocity;          // m/s
  AngularVelocity<T, D> omega;
};

// All points no farther than `radius` from the segment of half length `half_height` along the local y.
template <class T, int D>
struct OrientedCapsule {
  SmallVec<T, D> center;            // m
  T half_height, radius;            // m
  SmallMat<T, D> world_from_local;  // rotation
  SmallVec<T, D> velocity;          // m/s
  AngularVelocity<T, D> omega;
};

template <class T, int D>
COPPICE_INLINE ColliderSample<T, D> sample(const HalfSpace<T, D>& half, SmallVec<T, D> x) {
  const SmallVec<T, D> arm = x - half.point;
  return {dot(half.normal, arm), half.normal, half.velocity + spin_velocity(half.omega, arm)};
}

// At the centre itself the normal is the last axis.
template <class T, int D>
COPPICE_INLINE ColliderSample<T, D> sample(const Sphere<T, D>& sphere, SmallVec<T, D> x) {
  const SmallVec<T, D> arm = x - sphere.center;
  const T length = std::sqrt(dot(arm, arm));
  const bool defined = length > T(1e-12);
  const T inverse = T(1) / (defined ? length : T(1));
  SmallVec<T, D> normal{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    normal.v[i] = defined ? arm.v[i] * inverse : (i == D - 1 ? T(1) : T(0));
  }
  return {length - sphere.radius, normal, sphere.velocity + spin_velocity(sphere.omega, arm)};
}

// Returns a local place as seen from the point of the capsule's segment that is nearest to it.
template <class T, int D>
COPPICE_INLINE SmallVec<T, D> from_segment(const OrientedCapsule<T, D>& capsule, SmallVec<T, D> local) {
  local.v[1] -= clamp_to(local.v[1], -capsule.half_height, capsule.half_height);
  return local;
}

template <class T, int D>
COPPICE_INLINE ColliderSample<T, D> sample(const OrientedCapsule<T, D>& capsule, SmallVec<T, D> x) {
  const SmallVec<T, D> arm = x - capsule.center;
  const Sphere<T, D> end = {{}, capsule.radius, {}, {}};
  const ColliderSample<T, D> s =
      sample(end, from_segment(capsule, transpose(capsule.world_from_local) * arm));
  return {s.distance, capsule.world_from_local * s.normal,
          capsule.velocity + spin_velocity(capsule.omega, arm)};
}

// Exact inside and outside; inside, the normal is that of the nearest face.
template <class T, int D>
COPPICE_INLINE ColliderSample<T, D> sample(const OrientedBox<T, D>& box, SmallVec<T, D> x) {
  const SmallVec<T, D> arm = x - box.center;
  const SmallVec<T, D> local = transpose(box.world_from_local) * arm;
  SmallVec<T, D> outside{};  // how far beyond each pair of faces
  T n2 = T(0);
  T deepest = std::fabs(local.v[0]) - box.half_extent.v[0];
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    const T beyond = std::fabs(local.v[i]) - box.half_extent.v[i];
    outside.v[i] = max_of(beyond, T(0));
    n2 = outside.v[i] * outside.v[i] + n2;
    deepest = max_of(beyond, deepest);
  }
  const T length = std::sqrt(n2);
  const bool is_outside = length > T(1e-12);
  const T inverse = T(1) / (is_outside ? length : T(1));
  SmallVec<T, D> local_normal{};
  bool taken = false;  // one face only where several are equally near
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    const bool nearest = !taken & (std::fabs(local.v[i]) - box.half_extent.v[i] >= deepest);
    taken = taken | nearest;
    const T magnitude = is_outside ? outside.v[i] * inverse : (nearest ? T(1) : T(0));
    local_normal.v[i] = std::copysign(magnitude, local.v[i]);
  }
  return {is_outside ? length : deepest, box.world_from_local * local_normal,
          box.velocity + spin_velocity(box.omega, arm)};
}

// Returns how far it is from a place inside, at this signed distance, along the normal to the far side.
template <class T, int D>
COPPICE_INLINE T far_side(const Sphere<T, D>& sphere, const SmallVec<T, D>&, T distance) {
  return T(2) * sphere.radius + distance;
}
template <class T, int D>
COPPICE_INLINE T far_side(const OrientedCapsule<T, D>& capsule, const SmallVec<T, D>&, T distance) {
  return T(2) * capsule.radius + distance;
}
template <class T, int D>
COPPICE_INLINE T far_side(const OrientedBox<T, D>& box, const SmallVec<T, D>& normal, T distance) {
  const SmallVec<T, D> local = transpose(box.world_from_local) * normal;
  T thickness = T(0);
  COPPICE_UNROLL for (int i = 0; i < D; ++i) thickness += T(2) * std::fabs(local.v[i]) * box.half_extent.v[i];
  return thickness + distance;
}

// The node's velocity after contact (Stomakhin et al. 2013, section 8). Relative to the collider:
//   stick     the velocity becomes the collider's;
//   slip      the normal part vanishes, both ways;
//   separate  the normal part vanishes where it points into the collider; a receding node is left alone.
// Pressing with speed p into a slip or separate collider slows the tangential part by Coulomb friction, at
// most to rest: v_t *= max(0, 1 - friction p / |v_t|).
template <class T, int D>
COPPICE_INLINE SmallVec<T, D> respond_to_collider(BoundaryKind kind, T friction, SmallVec<T, D> velocity,
                                                  SmallVec<T, D> collider_velocity, SmallVec<T, D> normal) {
  const SmallVec<T, D> relative = velocity - collider_velocity;
  const T normal_speed = dot(relative, normal);
  const SmallVec<T, D> tangential = relative - normal_speed * normal;
  const T tangential_speed = std::sqrt(dot(tangential, tangential));
  const T pressing = max_of(-normal_speed, T(0));
  const T kept = max_of(T(1) - friction * pressing / max_of(tangential_speed, T(1e-12)), T(0));
  const bool recedes = (kind == BoundaryKind::kSeparate) & (normal_speed >= T(0));
  const T factor = kind == BoundaryKind::kStick ? T(0) : kept;
  SmallVec<T, D> result{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    result.v[i] = recedes ? velocity.v[i] : collider_velocity.v[i] + factor * tangential.v[i];
  }
  return result;
}

// The rotation by |omega| dt about omega (Rodrigues' formula; its 2-D case).
template <class T>
COPPICE_INLINE SmallMat<T, 2> rotation_over(SmallVec<T, 1> omega, T dt_s) {
  const T c = std::cos(omega.v[0] * dt_s);
  const T s = std::sin(omega.v[0] * dt_s);
  return {{c, -s, s, c}};
}
template <class T>
COPPICE_INLINE SmallMat<T, 3> rotation_over(SmallVec<T, 3> omega, T dt_s) {
  const T speed = std::sqrt(dot(omega, omega));
  const T inverse = T(1) / max_of(speed, T(1e-20));
  const T x = omega.v[0] * inverse, y = omega.v[1] * inverse, z = omega.v[2] * inverse;
  const T c = std::cos(speed * dt_s);
  const T s = std::sin(speed * dt_s);
  const T k = T(1) - c;
  return {{c + k * x * x, k * x * y - s * z, k * x * z + s * y,  //
           k * x * y + s * z, c + k * y * y, k * y * z - s * x,  //
           k * x * z - s * y, k * y * z + s * x, c + k * z * z}};
}

// The collider where its constant velocities take it in dt_s seconds; from the pose at time 0 no error
// accumulates.
template <class T, int D>
COPPICE_INLINE Sphere<T, D> moved(Sphere<T, D> sphere, T dt_s) {
  sphere.center = sphere.center + dt_s * sphere.velocity;
  return sphere;
}
template <class T, int D>
COPPICE_INLINE OrientedBox<T, D> moved(OrientedBox<T, D> box, T dt_s) {
  box.center = box.center + dt_s * box.velocity;
  box.world_from_local = rotation_over(box.omega, dt_s) * box.world_from_local;
  return box;
}
template <class T, int D>
COPPICE_INLINE HalfSpace<T, D> moved(HalfSpace<T, D> half, T dt_s) {
  half.point = half.point + dt_s * half.velocity;
  half.normal = rotation_over(half.omega, dt_s) * half.normal;
  return half;
}
template <class T, int D>
COPPICE_INLINE OrientedCapsule<T, D> moved(OrientedCapsule<T, D> capsule, T dt_s) {
  capsule.center = capsule.center + dt_s * capsule.velocity;
  capsule.world_from_local = rotation_over(capsule.omega, dt_s) * capsule.world_from_local;
  return capsule;
}

}  // namespace coppice::mpm
