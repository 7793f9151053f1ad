// How much of the space around a particle material can be in, for its density (water_model.h).
//
// Device-clean.
#pragma once
#include "apps/mpm/particle_tile.h"

namespace coppice::mpm {

// The share of a node's B-spline that is on this side of a wall which the node is so many nodes away from: the
// spline's integral.
COPPICE_INLINE float share_of_node(float from_wall) {
  const float away = std::fabs(from_wall), left = max_of(1.5f - away, 0.0f);
  const float beyond = left * left * left / 6.0f;
  const float near = from_wall * (0.75f - from_wall * from_wall * (1.0f / 3.0f));
  return away < 0.5f ? 0.5f + near : from_wall > 0.0f ? 1.0f - beyond : beyond;
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
    const int low = first[3 - D + k] - kPad, high = first[3 - D + k] + kTileSize<D> - 1;
    beside = beside || low < 2 || static_cast<float>(high) > a.high_wall[k] - 1.5f;
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
    const bool is_near = static_cast<float>(first[3 - D + k] + kTileSize<D>) > a.high_wall[k];
    walls |= (is_between && is_near ? 1u : 0u) << k;
  }
  return walls;
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
    const float low = base - static_cast<float>(kPad), high = a.high_wall[k] - base;
    if (low > 1.0f && high - static_cast<float>(kStencilWidth - 1) >= 1.5f) continue;
    float weights[kStencilWidth], along = 0.0f;
    bspline_weights(x - base, weights);
    COPPICE_UNROLL
    for (int i = 0; i < kStencilWidth; ++i)
      along += weights[i] * share_of_node(low + static_cast<float>(i)) *
               share_of_node(high - static_cast<float>(i));
    share *= along;
  }
  return share;
}

}  // namespace coppice::mpm
