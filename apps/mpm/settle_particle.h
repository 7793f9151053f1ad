// Particles that have moved beside walls or colliders, and what a step finds out on the way.
//
// Device-clean.
#pragma once
#include "apps/mpm/block_colliders.h"
#include "apps/mpm/particle_tile.h"
#include "apps/mpm/space_share.h"

namespace coppice::mpm {

// A thread's particles have these findings, which are merged into the step control once per block.
struct BlockFindings {
  float max_speed2 = 0.0f;   // m^2/s^2
  float max_modulus = 0.0f;  // m^2/s^2, wave modulus / density
  bool drifted = false;
  bool not_finite = false;
};

// Returns whether the stencil of a place, so many nodes from a tile's first, is in that tile.
template <int D>
COPPICE_INLINE bool is_in_tile(float nodes) {
  const float base = bspline_base(nodes);
  return base >= 0.0f && base <= static_cast<float>(kTileSize<D> - kStencilWidth);
}

// Says what there is beside a block for its particles to meet.
struct Surroundings {
  std::uint32_t colliders = 0;    // a bit for each that is near
  std::uint32_t inner_walls = 0;  // a bit for each axis whose high wall is near and between nodes
  bool has_walls = false;
  template <int D>
  COPPICE_INLINE bool count(const Group<D>& group) const {
    return colliders != 0 || (has_walls && group.per_density > 0.0f);
  }
};
template <int D>
COPPICE_INLINE Surroundings surroundings(const StepArguments<D>& a, const std::int32_t* first) {
  const std::uint32_t inner_walls = walls_between_nodes<D>(a, first);
  return {colliders_beside<D>(a, first), inner_walls, has_walls_beside<D>(a, first) || inner_walls != 0};
}

// Stops a particle at the walls that have no nodes of their own; nodes stop it at the others. It has moved,
// and is in the domain.
template <int D>
COPPICE_INLINE void stop_at_walls(const StepArguments<D>& a, std::uint32_t walls, const Particle& p) {
  using A = Attribute<D>;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    if ((walls >> k & 1u) == 0 || p[A::kPosition + k] < high_end(a, k)) continue;
    SmallVec<float, D> normal{}, still{}, v{};
    normal.v[k] = -1.0f;
    COPPICE_UNROLL for (int j = 0; j < D; ++j) v.v[j] = p[A::kVelocity + j];
    v = respond_to_collider(a.walls[2 * k + 1], a.wall_friction, v, still, normal);
    COPPICE_UNROLL for (int j = 0; j < D; ++j) p[A::kVelocity + j] = v.v[j];
  }
}

// Moves a particle beside walls or colliders, to which gather_particle() has given its velocity, and sets its
// density right.
template <int D>
COPPICE_INLINE void settle_particle(const StepArguments<D>& a, const Group<D>& group, const Particle& p,
                                    const std::int32_t* first, std::int64_t block_number,
                                    const Surroundings& beside, BlockFindings& found) {
  using A = Attribute<D>;
  SmallVec<float, D> from{}, to{}, v{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    from.v[k] = p[A::kPosition + k], v.v[k] = p[A::kVelocity + k];
    to.v[k] = clamp_to(from.v[k] + a.dt * v.v[k], low_end(a), high_end(a, k));
  }
  if (group.per_density > 0.0f) {
    float share = share_of_space<D>(a, beside.colliders, from);
    if (beside.inner_walls != 0) share *= share_before_walls<D>(a, beside.inner_walls, from);
    p[A::kStress] /= max_of(share, 0.25f);
  }
  stop_at_colliders<D>(a, beside.colliders, block_number, group.mass, from, to, v);
  float speed2 = 0.0f;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    p[A::kPosition + k] = to.v[k];
    p[A::kVelocity + k] = v.v[k];
    speed2 += v.v[k] * v.v[k];
    found.drifted =
        found.drifted || !is_in_tile<D>(to.v[k] * a.inv_dx - static_cast<float>(first[3 - D + k]));
  }
  found.max_speed2 = speed2 > found.max_speed2 ? speed2 : found.max_speed2;
}

}  // namespace coppice::mpm
