// The MPM solver's host side and kernels share this: particle arrays, grid geometry, groups, step
// control.
//
// Device-clean. Positions are in metres from the grid's node (0, 0, 0), which lies kPad cells outside the
// domain's lowest corner; node i is at i dx. A block is B^D nodes (B = 4 in 3-D, 8 in 2-D).
//
// Particles are sorted by block. A particle's home block b is where (base - 1) lies, base being the
// lowest node of its stencil; between two sortings it may drift by one cell each way, so its stencil
// stays within the tile of T = B + 4 nodes that starts at the block's first node and reaches into
// the next block along each axis:
//
//     block b        |----B----|
//     tile of b      |----B----|--4--|        nodes B b .. B b + B + 3
//     base at home    [1 .. B]                after drift: 0 .. B + 1, stencil up to B + 3
#pragma once
#include <cstdint>

#include "apps/mpm/distance_field.h"
#include "apps/mpm/material_models.h"
#include "apps/scene/collider_shape.h"

namespace coppice::mpm {

inline constexpr int kPad = 4;  // cells between the grid's first node and the domain
inline constexpr int kMaxColliders = 16;
template <int D>
inline constexpr int kBlockSize = D == 3 ? 4 : 8;
template <int D>
inline constexpr int kTileSize = kBlockSize<D> + 4;

// Momentum (kg m/s) and mass (kg), later velocity (m/s) and mass, of a grid node: (x, y, z, mass); z is 0 in
// 2-D.
struct alignas(16) NodeValue {
  float v[4];
};
static_assert(sizeof(NodeValue) == 16);
// In scenes with AFLIP, and with water among materials of other densities, nodes are wide: they have a second
// NodeValue with momentum (kg m/s), later velocity (m/s), before the step's forces, and the share of the
// node's cell that material takes at rest.

// Struct of arrays: attribute a of particle i is base[a * stride + i]. Lengths in floats.
struct ParticleArrays {
  float* base;
  std::int64_t stride;
};

// The key of a particle that was in no block yet.
inline constexpr std::uint32_t kNoParticleKey = ~0u;

// Attribute numbers of D-dimensional particles.
template <int D>
struct Attribute {
  static constexpr int kPosition = 0;    // m, D of them
  static constexpr int kVelocity = D;    // m/s, D
  static constexpr int kAffine = 2 * D;  // 1/s, D x D, row-major: APIC's C, the velocity gradient
  static constexpr int kStress =
      kAffine + D * D;  // Pa: Kirchhoff stress, symmetric, D (D + 1) / 2: xx xy xz yy yz zz
  static constexpr int kDeformation = kStress + D * (D + 1) / 2;  // D x D: elastic F
  static constexpr int kScalar = kDeformation + D * D;            // the material's scalar
  static constexpr int kGroup = kScalar + 1;                      // the group's number, as a float
  static constexpr int kId = kGroup + 1;  // place in the order of emission, the bits of a uint32
  static constexpr int kCount = kId + 1;
};

// Particles of one emitter: one material, one mass.
template <int D>
struct Group {
  MaterialKind kind;
  float mass;         // kg, per particle
  float volume;       // m^3 (m^2 in 2-D), undeformed, per particle
  float density;      // kg/m^3
  float cell_share;   // of a cell, per particle: 1 / particles per cell
  float per_density;  // 1 / (density times a cell's volume) where the density around particles counts, or 0
  Jelly<float, D> jelly;
  Snow<float, D> snow;
  Water<float, D> water;
  Sand<float, D> sand;
  Clay<float, D> clay;  // mud, too
};

// Calls visit(material) with the material of a group.
template <int D, class Visit>
COPPICE_INLINE auto with_material(const Group<D>& group, Visit&& visit) {
  switch (group.kind) {
    case MaterialKind::kSnow:
      return visit(group.snow);
    case MaterialKind::kWater:
      return visit(group.water);
    case MaterialKind::kSand:
      return visit(group.sand);
    case MaterialKind::kClay:
    case MaterialKind::kMud:
      return visit(group.clay);
    case MaterialKind::kJelly:
      break;
  }
  return visit(group.jelly);
}

using ColliderKind = scene::ColliderShape;

template <int D>
struct ColliderState {
  ColliderKind kind;
  BoundaryKind boundary;
  float friction;
  Sphere<float, D> sphere;
  OrientedBox<float, D> box;  // of a mesh: its frame
  HalfSpace<float, D> plane;
  OrientedCapsule<float, D> capsule;
  DistanceField field;  // of a mesh
};

template <int D>
COPPICE_INLINE ColliderSample<float, D> sample(const ColliderState<D>& collider, SmallVec<float, D> x) {
  if (collider.kind == ColliderKind::kPlane) return sample(collider.plane, x);
  if (collider.kind == ColliderKind::kCapsule) return sample(collider.capsule, x);
  if constexpr (D == 3)
    if (collider.kind == ColliderKind::kMesh) return sample(collider.field, collider.box, x);
  return collider.kind == ColliderKind::kSphere ? sample(collider.sphere, x) : sample(collider.box, x);
}
template <int D>
COPPICE_INLINE Contact<float, D> meet(const ColliderState<D>& now, const ColliderState<D>& next,
                                      SmallVec<float, D> from, SmallVec<float, D> to, float gap) {
  if (now.kind == ColliderKind::kPlane) return meet(now.plane, next.plane, from, to, gap);
  if (now.kind == ColliderKind::kCapsule) return meet(now.capsule, next.capsule, from, to, gap);
  if constexpr (D == 3)
    if (now.kind == ColliderKind::kMesh) return meet(now.field, now.box, next.box, from, to, gap);
  return now.kind == ColliderKind::kSphere ? meet(now.sphere, next.sphere, from, to, gap)
                                           : meet(now.box, next.box, from, to, gap);
}

template <int D>
COPPICE_INLINE SmallVec<float, D> carry(const ColliderState<D>& now, const ColliderState<D>& next,
                                        SmallVec<float, D> x) {
  if (now.kind == ColliderKind::kPlane) return carry(now.plane, next.plane, x);
  if (now.kind == ColliderKind::kCapsule) return carry(now.capsule, next.capsule, x);
  return now.kind == ColliderKind::kSphere ? carry(now.sphere, next.sphere, x) : carry(now.box, next.box, x);
}

// Returns whether a node inside of a collider may have its mass from the far side, too: who leaves there
// would look like who comes here. Such nodes are left to themselves; particles meet the collider all the
// same. Not for meshes, of which only the distance is known.
template <int D>
COPPICE_INLINE bool is_seen_from_behind(const ColliderState<D>& collider,
                                        const ColliderSample<float, D>& inside, float dx) {
  const float reach = 1.5f * dx;  // of a particle's stencil
  if (collider.kind == ColliderKind::kSphere)
    return far_side(collider.sphere, inside.normal, inside.distance) < reach;
  if (collider.kind == ColliderKind::kCapsule)
    return far_side(collider.capsule, inside.normal, inside.distance) < reach;
  return collider.kind == ColliderKind::kBox &&
         far_side(collider.box, inside.normal, inside.distance) < reach;
}

// A collider has got so much from the material since the frame began: whole numbers of fixed units, so that
// the sum does not depend on the order. Blocks spread over kImpulseSlots of them.
struct alignas(64) ColliderImpulse {
  std::uint64_t momentum[3];  // two's complement, in units of 1 / StepArguments::per_impulse
  std::uint64_t angular[3];   // about the collider's centre, in that unit times a metre; 2-D: [2] alone
};
inline constexpr int kImpulseSlots = 32;

// The same for each side of a box, along the box's own axes. Side 2 k is the one in the direction of minus
// its axis k, side 2 k + 1 that of plus.
struct alignas(64) SideImpulses {
  std::uint64_t momentum[6][3];
};
static_assert(sizeof(SideImpulses) == 192);
template <int D>
COPPICE_INLINE float distance_to(const ColliderState<D>& collider, SmallVec<float, D> x) {
  return sample(collider, x).distance;
}

// The kernels of a batch of steps tell each other and the host this. It lives in device memory.
template <int D>
struct StepControl {
  std::uint32_t stop;  // 1: the remaining steps of the batch do nothing
  std::uint32_t steps_done;
  std::uint32_t drifted;     // some particle left its margin: sort again
  std::uint32_t too_fast;    // some particle crosses more than the CFL number allows: choose dt again
  std::uint32_t too_stiff;   // some wave does
  std::uint32_t not_finite;  // some velocity or position is not a number
  std::uint32_t
      max_speed_bits;  // largest |v|, m/s, of the last step; bits of a non-negative float order like integers
  std::uint32_t max_modulus_bits;  // largest wave modulus / density, m^2/s^2, of the last step
  std::uint32_t n_colliders;
  double time_s;
  double start_s[kMaxColliders];
  ColliderState<D> start[kMaxColliders];  // pose at start_s
  ColliderState<D> now[kMaxColliders];    // pose at time_s
  ColliderState<D> next[kMaxColliders];   // pose when the step is done
};

// Arguments of every kernel of a step.
template <int D>
struct StepArguments {
  ParticleArrays particles;
  const std::uint32_t* starts;  // [n_blocks * n_groups + 1] first particle of (block, group)
  const Group<D>* groups;
  StepControl<D>* control;
  std::uint32_t n_groups;
  float dx, inv_dx;       // m, 1/m
  float dt;               // s
  float max_speed;        // m/s; a faster particle sets too_fast, a faster wave too_stiff
  float gravity[3];       // m/s^2
  float flip;             // share of its own motion that a particle keeps; 0: APIC
  std::int32_t cells[3];  // that cover the domain, per axis: nodes from kPad + cells on are not in it
  // The walls stand at node kPad and, where the domain's side is no whole number of cells, between nodes,
  // `high_wall` nodes from node 0.
  float high_wall[3];
  BoundaryKind walls[6];  // x_min, x_max, y_min, y_max, z_min, z_max
  float wall_friction;
  ColliderImpulse* impulses;  // [kImpulseSlots][kMaxColliders]
  float per_impulse;          // 1 / (kg m/s), a power of two
  SideImpulses* sides;        // [kImpulseSlots][kMaxColliders]; null where `with_sides` is 0
  std::uint32_t with_sides;   // a bit for each collider whose sides are told apart
};

}  // namespace coppice::mpm
