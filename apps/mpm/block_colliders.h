// Contact of a block's particles with the colliders beside it.
//
// Device-clean.
#pragma once
#include "apps/mpm/collider_impulse.h"

namespace coppice::mpm {

// Returns a bit for each collider that is within two cells of where the block's particles may be: as far as
// they see, and twice as far as anything goes in a step. A stencil in the tile has its middle a cell from its
// ends at least.
template <int D>
COPPICE_INLINE std::uint32_t colliders_beside(const StepArguments<D>& a, const std::int32_t* first) {
  std::uint32_t beside = 0;
  SmallVec<float, D> middle{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k)
    middle.v[k] = (static_cast<float>(first[3 - D + k]) + 0.5f * (kTileSize<D> - 1)) * a.dx;
  const float reach = (0.5f * (D == 3 ? 1.7321f : 1.4143f) * (kTileSize<D> - 2) + 2.0f) * a.dx;
  for (std::uint32_t c = 0; c < a.control->n_colliders; ++c) {
    if (distance_to(a.control->next[c], middle) < reach) beside |= 1u << c;
  }
  return beside;
}

// Stops a particle of a block that moves `from` one place to another at the colliders that it meets, which
// get its momentum. Returns whether it meets any.
template <int D>
COPPICE_INLINE bool stop_at_colliders(const StepArguments<D>& a, std::uint32_t colliders,
                                      std::int64_t block_number, float mass, const SmallVec<float, D>& from,
                                      SmallVec<float, D>& to, SmallVec<float, D>& velocity) {
  const float gap = 1e-3f * a.dx;
  bool meets = false;
  for (std::uint32_t c = 0; colliders >> c != 0; ++c) {
    if ((colliders >> c & 1u) == 0) continue;
    const ColliderState<D>&now = a.control->now[c], &next = a.control->next[c];
    const Contact<float, D> hit = meet(now, next, from, to, gap);
    if (!hit.is_any) continue;
    meets = true;
    to = hit.position;
    const SmallVec<float, D> before = velocity;
    velocity = respond_to_collider(now.boundary, now.friction, velocity, hit.velocity, hit.normal);
    add_impulse<D>(a, block_number, c, mass * (before - velocity), to, hit.normal);
  }
  return meets;
}

}  // namespace coppice::mpm
