// Opacities between the points that are given.
#include "apps/render/volume_style.h"

#include <algorithm>

namespace coppice::render {

float VolumeStyle::opacity_at(float at) const {
  const std::vector<OpacityPoint>& points = opacity;
  if (points.empty()) return 0;
  if (at <= points.front().at) return points.front().per_cell;
  for (size_t i = 1; i < points.size(); ++i) {
    const OpacityPoint &a = points[i - 1], &b = points[i];
    if (at <= b.at)
      return a.per_cell + (b.per_cell - a.per_cell) * (at - a.at) / std::max(b.at - a.at, 1e-9f);
  }
  return points.back().per_cell;
}

}  // namespace coppice::render
