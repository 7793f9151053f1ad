// Rays of a camera through the mouse (see hand_place.h).
#include "apps/viewer/hand_place.h"

namespace coppice::viewer {
namespace {

constexpr float kMostRadii =
    2;  // of movement that count at once: a hand that flies past has no longer to act

}  // namespace

Vec3f place_as_deep_as(const render::Camera& camera, const Vec2f& viewport, const Vec2f& at,
                       const Vec3f& through) {
  const Mat4f view = camera.view_from_world();
  const Vec3f right = view.block<1, 3>(0, 0), up = view.block<1, 3>(1, 0), back = view.block<1, 3>(2, 0);
  const float depth = back.dot(camera.position - through);
  const Vec2f half = camera.half_extent(viewport.x() / viewport.y()) *
                     (camera.projection == render::Projection::kPerspective ? depth : 1.0f);
  const float x = 2 * at.x() / viewport.x() - 1, y = 1 - 2 * at.y() / viewport.y();
  return camera.position - depth * back + x * half.x() * right + y * half.y() * up;
}

float radius_on_screen(const render::Camera& camera, const Vec2f& viewport, const Vec3f& place,
                       float radius_m) {
  const Mat4f view = camera.view_from_world();
  const Vec3f back = view.block<1, 3>(2, 0);
  const bool is_perspective = camera.projection == render::Projection::kPerspective;
  const float depth = is_perspective ? back.dot(camera.position - place) : 1.0f;
  if (!(depth > 0)) return 0;
  return radius_m / (camera.half_extent(viewport.x() / viewport.y()).y() * depth) * 0.5f * viewport.y();
}

std::optional<Vec3f> place_in_domain(const Vec3f& place, const Aabb3f& domain, int dim, float reach_m) {
  Vec3f from = place;
  if (dim == 2) from.z() = domain.min.z();
  const Vec3f inside = from.cwiseMax(domain.min).cwiseMin(domain.max);
  if (!((inside - from).norm() <= reach_m)) return std::nullopt;
  return inside;
}

Vec3f push_velocity(const Vec3f& moved, float radius_m, float speed_m_s) {
  const float radii = moved.norm() / radius_m;
  return moved * (speed_m_s / radius_m * (radii > kMostRadii ? kMostRadii / radii : 1.0f));
}

}  // namespace coppice::viewer
