// Cells at points (see cell_text.h).
#include "apps/viewer/cell_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace coppice::viewer {

Vec3i cell_at(const Vec3f& point_m, const render::VolumePlacement& placement, int dim, Aabb3f& bounds) {
  constexpr float kFarthest = 1e9f;  // of what a coordinate can be
  Vec3i cell = Vec3i::Zero();
  bounds.min = bounds.max = placement.origin_m;
  for (int axis = 0; axis < dim; ++axis) {
    const float at = std::floor((point_m[axis] - placement.origin_m[axis]) / placement.cell_m);
    cell[axis] = static_cast<int>(std::clamp(std::isnan(at) ? 0.0f : at, -kFarthest, kFarthest));
    bounds.min[axis] += placement.cell_m * static_cast<float>(cell[axis]);
    bounds.max[axis] = bounds.min[axis] + placement.cell_m;
  }
  return cell;
}

std::string name_of_cell(const Vec3i& cell, int dim) {
  std::string text;
  for (int axis = 0; axis < dim; ++axis) text += fmt::format("{}{}", axis == 0 ? "(" : ", ", cell[axis]);
  return text + ")";
}

}  // namespace coppice::viewer
