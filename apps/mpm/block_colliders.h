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

// Particles stay between these, m from node 0.
template <int D>
COPPICE_INLINE float low_end(const StepArguments<D>& a) {
  return (kPad + 0.01f) * a.dx;
}
template <int D>
COPPICE_INLINE float high_end(const StepArguments<D>& a, int k) {
  return (a.high_wall[k] - 0.01f) * a.dx;
}

// Stops a particle of a block that moves `from` one place to another at the colliders that it meets, which
// get its momentum.
//
// One that is pushed into another collider, or beyond a wall, is pushed again. Where that does not end there
// is no room, and it goes where the last collider has taken the place that it came from. A particle's whole
// way tells on what side of a collider it is, but once it slides on along a round one, the way cuts through
// that: then it counts where the particle is.
template <int D>
COPPICE_INLINE void stop_at_colliders(const StepArguments<D>& a, std::uint32_t colliders,
                                      std::int64_t block_number, float mass, const SmallVec<float, D>& from,
                                      SmallVec<float, D>& to, SmallVec<float, D>& velocity) {
  constexpr int kMostRounds = 16;
  constexpr std::uint32_t kNobody = kMaxColliders;
  const float gap = 1e-3f * a.dx;
  std::uint32_t met = 0, latest = kNobody, last_hit = 0;  // the latest one has put the particle where it is
  bool meets = true;
  for (int round = 0; meets && round < kMostRounds; ++round) {
    meets = false;
    for (std::uint32_t c = 0; colliders >> c != 0; ++c) {
      if ((colliders >> c & 1u) == 0 || c == latest) continue;
      const ColliderState<D>&now = a.control->now[c], &next = a.control->next[c];
      const bool is_round = now.kind != ColliderKind::kBox;
      if ((met >> c & 1u) != 0 && is_round && distance_to(next, to) > -0.5f * gap) continue;
      const Contact<float, D> hit = meet(now, next, from, to, gap);
      if (!hit.is_any) continue;
      meets = true;
      met |= 1u << c;
      latest = last_hit = c;
      const SmallVec<float, D> moved = to, before = velocity;
      to = hit.position;
      velocity = respond_to_collider(now.boundary, now.friction, velocity, hit.velocity, hit.normal);
      // A push out of the collider moves the particle off its line: what angular momentum that makes the
      // collider gives, too.
      const SmallVec<float, D> lost = before - velocity;
      const SmallVec<float, 3> turn =
          mass * (torque_of(moved - center_of(now), lost) + torque_of(moved - to, velocity));
      add_impulse<D>(a, block_number, c, mass * lost, turn, hit.normal);
      COPPICE_UNROLL
      for (int k = 0; k < D; ++k) {
        const float inside = clamp_to(to.v[k], low_end(a), high_end(a, k));
        if (inside != to.v[k]) latest = kNobody;
        to.v[k] = inside;
      }
    }
  }
  if (met == 0 || !meets) return;
  const SmallVec<float, D> carried = carry(a.control->now[last_hit], a.control->next[last_hit], from);
  add_impulse<D>(a, block_number, last_hit, {}, mass * torque_of(to - carried, velocity), {});
  COPPICE_UNROLL for (int k = 0; k < D; ++k) to.v[k] = clamp_to(carried.v[k], low_end(a), high_end(a, k));
}

}  // namespace coppice::mpm
