// A node of the grid has these values to show: its density and its speed.
//
// Device-clean.
#pragma once
#include "apps/mpm/solver_types.h"

namespace coppice::mpm {

enum class GridValue : std::int32_t {
  kDensity = 0,  // kg/m^3 (kg/m^2 in 2-D)
  kSpeed = 1,    // m/s
};

// A node at rest has this speed, so that it is told from one without mass; halves have it, too.
inline constexpr float kLeastSpeed = 6e-8f;

// Returns a node's value after a step, 0 where it has no mass. `per_cell` is 1 / the cell's volume.
COPPICE_INLINE float grid_value(const NodeValue& node, GridValue value, float per_cell) {
  if (value == GridValue::kDensity) return node.v[3] * per_cell;
  if (!(node.v[3] > 0.0f)) return 0.0f;
  const float speed = sqrtf(node.v[0] * node.v[0] + node.v[1] * node.v[1] + node.v[2] * node.v[2]);
  return speed < kLeastSpeed ? kLeastSpeed : speed;
}

}  // namespace coppice::mpm
