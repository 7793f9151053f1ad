// Adds up what the material gives to colliders.
//
// Device-clean.
#pragma once
#include "apps/mpm/solver_types.h"
#include "gpu/device_intrinsics.h"

namespace coppice::mpm {

COPPICE_INLINE void add_fixed(std::uint64_t* sum, float value) {
  if (!(std::fabs(value) < 0x1p62f) || value == 0.0f) return;  // not a number, or too much for any sum
  const auto whole = static_cast<std::int64_t>(value + std::copysign(0.5f, value));
  coppice_fetch_add_u64(sum, static_cast<std::uint64_t>(whole));
}

COPPICE_INLINE SmallVec<float, 3> torque_of(SmallVec<float, 3> arm, SmallVec<float, 3> impulse) {
  return cross(arm, impulse);
}
COPPICE_INLINE SmallVec<float, 3> torque_of(SmallVec<float, 2> arm, SmallVec<float, 2> impulse) {
  return {{0.0f, 0.0f, arm.v[0] * impulse.v[1] - arm.v[1] * impulse.v[0]}};
}

template <int D>
COPPICE_INLINE SmallVec<float, D> center_of(const ColliderState<D>& collider) {
  return collider.kind == ColliderKind::kSphere    ? collider.sphere.center
         : collider.kind == ColliderKind::kPlane   ? collider.plane.point
         : collider.kind == ColliderKind::kCapsule ? collider.capsule.center
                                                   : collider.box.center;
}

// Adds what a box gets to the sums of the side that a normal of it belongs to.
template <int D>
COPPICE_INLINE void add_side_impulse(const StepArguments<D>& a, std::int64_t slot, std::uint32_t c,
                                     const SmallVec<float, D>& scaled, const SmallVec<float, D>& normal) {
  const SmallMat<float, D> local_from_world = transpose(a.control->now[c].box.world_from_local);
  const SmallVec<float, D> n = local_from_world * normal, impulse = local_from_world * scaled;
  float largest = -1.0f;
  int side = 0;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const bool is_larger = std::fabs(n.v[k]) > largest;
    side = is_larger ? 2 * k + (n.v[k] > 0.0f ? 1 : 0) : side;
    largest = is_larger ? std::fabs(n.v[k]) : largest;
  }
  SideImpulses& sum = a.sides[slot * kMaxColliders + c];
  COPPICE_UNROLL for (int k = 0; k < D; ++k) add_fixed(&sum.momentum[side][k], impulse.v[k]);
}

// Gives collider `c` momentum (kg m/s) and angular momentum (kg m^2/s, about its centre) at a place where it
// has that normal. `spread` is any number: equal ones share their sums' memory.
template <int D>
COPPICE_INLINE void add_impulse(const StepArguments<D>& a, std::int64_t spread, std::uint32_t c,
                                const SmallVec<float, D>& impulse, const SmallVec<float, 3>& turn,
                                const SmallVec<float, D>& normal) {
  ColliderImpulse& sum = a.impulses[spread % kImpulseSlots * kMaxColliders + c];
  const SmallVec<float, D> scaled = a.per_impulse * impulse;
  COPPICE_UNROLL for (int k = 0; k < D; ++k) add_fixed(&sum.momentum[k], scaled.v[k]);
  COPPICE_UNROLL for (int k = D == 3 ? 0 : 2; k < 3; ++k)
      add_fixed(&sum.angular[k], a.per_impulse * turn.v[k]);
  if ((a.with_sides >> c & 1u) != 0) add_side_impulse<D>(a, spread % kImpulseSlots, c, scaled, normal);
}

}  // namespace coppice::mpm
