// Checks of a scene before it is drawn.
#include "apps/render/render_scene.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace coppice::render {
namespace {

void require(bool condition, std::string message) {
  if (!condition) throw Error(ErrorCode::kInvalidArgument, "cannot draw: " + std::move(message));
}

}  // namespace

void RenderScene::validate() const {
  require(dim == 2 || dim == 3, fmt::format("the dimension is {}, not 2 or 3", dim));
  require(domain.min.allFinite() && domain.max.allFinite() && !domain.is_empty(),
          "the domain is empty or not finite");
  require(std::isfinite(radius_m) && radius_m > 0.0f, fmt::format("the particle radius is {} m", radius_m));
  for (const float spacing_m : body_spacing_m)
    require(std::isfinite(spacing_m) && spacing_m >= 0.0f,
            fmt::format("a body's spacing is {} m", spacing_m));
  require(!palette.empty(), "the palette has no colours");
  require(materials.empty() || materials.size() == positions.size(),
          fmt::format("{} materials for {} particles", materials.size(), positions.size()));
  require(looks.empty() || looks.size() == positions.size(),
          fmt::format("{} looks for {} particles", looks.size(), positions.size()));
  require(color_mode != ColorMode::kScalar || scalar.size() == positions.size(),
          fmt::format("{} values to colour {} particles by", scalar.size(), positions.size()));
  require(!range || (std::isfinite(range->min) && std::isfinite(range->max)),
          "the colour range is not finite");
  for (const RenderCollider& collider : colliders) {
    require(collider.center.allFinite() && collider.half_size.allFinite() &&
                std::isfinite(collider.radius_m) && collider.world_from_local.allFinite(),
            "a collider is not finite");
  }
  camera.validate();
}

Vec3f water_absorption(const Aabb3f& domain) {
  // A third of the longest side lets so much through: exp(-these).
  return Vec3f(3.2f, 0.95f, 0.42f) * (3.0f / domain.size().maxCoeff());
}

}  // namespace coppice::render
