// How much of the space around a particle material can be in, for its density (water_model.h).
//
// Device-clean.
#pragma once
#include "apps/mpm/particle_tile.h"

namespace coppice::mpm {

// The share of a node's B-spline that is on this side of a wall which the node is so many nodes away from.
COPPICE_INLINE float share_of_node(int from_wall) {
  constexpr float kBeside = 1.0f / 48.0f;
  return from_wall > 1     ? 1.0f
         : from_wall == 1  ? 1.0f - kBeside
         : from_wall == 0  ? 0.5f
         : from_wall == -1 ? kBeside
                           : 0.0f;
}

// The same of a particle's nodes together, for a plane so many cells away in any direction: the integral of a
// quintic B-spline, but for 0.03.
COPPICE_INLINE float share_before_plane(float cells) {
  const float x = clamp_to(cells * (1.0f / 1.5f), -1.0f, 1.0f);
  return 0.5f + x * (0.75f - 0.25f * x * x);
}

// Returns whether particles of the block may come within two cells of a wall.
template <int D>
COPPICE_INLINE bool has_walls_beside(const StepArguments<D>& a, const std::int32_t* first) {
  bool beside = false;
  for (int k = 0; k < D; ++k) {
    const int low = first[3 - D + k] - kPad;
    beside = beside || low < 2 || low + kTileSize<D> > a.cells[k] - 1;
  }
  return beside;
}

// Returns a bit for each axis whose high wall stands between nodes where particles of the block may come.
template <int D>
COPPICE_INLINE std::uint32_t walls_between_nodes(const StepArguments<D>& a, const std::int32_t* first) {
  std::uint32_t walls = 0;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const bool is_between = a.high_wall[k] != static_cast<float>(kPad + a.cells[k]);
    const bool is_near = static_cast<float>(first[3 - D + k] + kTileSize<D> + 1) > a.high_wall[k];
    walls |= (is_between && is_near ? 1u : 0u) << k;
  }
  return walls;
}

// Returns how much of the space around a place is before the walls between nodes, by what the nodes there
// weigh, as a part of what it would be if these walls stood at the next node.
template <int D>
COPPICE_INLINE float share_before_walls(const StepArguments<D>& a, std::uint32_t walls,
                                        const SmallVec<float, D>& at) {
  float share = 1.0f;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    if ((walls >> k & 1u) == 0) continue;
    const float x = at.v[k] * a.inv_dx, base = bspline_base(x);
    const float low = base - static_cast<float>(kPad), next = static_cast<float>(kPad + a.cells[k]) - base;
    float weights[kStencilWidth], before = 0.0f, before_next = 0.0f;
    bspline_weights(x - base, weights);
    COPPICE_UNROLL
    for (int i = 0; i < kStencilWidth; ++i) {
      const float node = static_cast<float>(i), weight = weights[i] * share_of_node_at(low + node);
      before += weight * share_of_node_at(a.high_wall[k] - base - node);
      before_next += weight * share_of_node_at(next - node);
    }
    share *= before / max_of(before_next, 1e-6f);
  }
  return share;
}

// Returns how much of the space around a place is between the walls and outside of colliders, by what the
// nodes there weigh: 1 from two cells on. On the other side there is no mass.
template <int D>
COPPICE_INLINE float share_of_space(const StepArguments<D>& a, std::uint32_t colliders,
                                    const SmallVec<float, D>& at) {
  float share = 1.0f;
  for (std::uint32_t c = 0; colliders >> c != 0; ++c) {
    if ((colliders >> c & 1u) != 0)
      share *= share_before_plane(distance_to(a.control->now[c], at) * a.inv_dx);
  }
  for (int k = 0; k < D; ++k) {
    const float x = at.v[k] * a.inv_dx, base = bspline_base(x);
    const int low = static_cast<int>(base) - kPad, high = a.cells[k] - low;
    if (low > 1 && high - (kStencilWidth - 1) > 1) continue;
    float weights[kStencilWidth], along = 0.0f;
    bspline_weights(x - base, weights);
    COPPICE_UNROLL
    for (int i = 0; i < kStencilWidth; ++i)
      along += weights[i] * share_of_node(low + i) * share_of_node(high - i);
    share *= along;
  }
  return share;
}

}  // namespace coppice::mpm
