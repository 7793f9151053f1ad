// The lines (see hand_check.h).
#include "apps/mpm/hand_check.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "apps/mpm/place_text.h"
#include "core/error.h"

namespace coppice::mpm {
void check_stroke(const scene::SceneConfig& scene, std::string_view what, const Stroke& stroke) {
  if (!(stroke.radius_m > 0) || !std::isfinite(stroke.radius_m)) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: a radius of {:.4g} m; expected a positive, finite one",
                                               what, stroke.radius_m));
  }
  const Vec3f low = scene.domain.min.cast<float>(), high = scene.domain.max.cast<float>();
  for (const Vec3f& place : {stroke.from, stroke.to}) {
    bool is_inside = true;
    for (int axis = 0; axis < scene.dim; ++axis)
      is_inside = is_inside && place[axis] >= low[axis] && place[axis] <= high[axis];
    if (is_inside) continue;
    throw Error(ErrorCode::kUsage, fmt::format("{}: {} m is outside of the domain; expected {} to {}", what,
                                               place_text(place, scene.dim), place_text(low, scene.dim),
                                               place_text(high, scene.dim)));
  }
}

void check_velocity(std::string_view what, const Vec3f& velocity) {
  if (velocity.allFinite()) return;
  throw Error(ErrorCode::kUsage, fmt::format("{}: a velocity of {} m/s; expected finite numbers", what,
                                             place_text(velocity, 3)));
}

void check_not_empty(const scene::SceneConfig& scene, float radius_m, uint64_t particles) {
  if (particles > 0) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format(
          "emit: no particle is in a ball of {:.4g} m; expected a radius of a cell's {:.4g} m or more",
          radius_m, scene.dx_m()));
}

}  // namespace coppice::mpm
