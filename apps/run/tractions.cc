// Splits forces, and cuts planes (see tractions.h).
#include "apps/run/tractions.h"

#include <fmt/format.h>

#include <string>

#include "apps/scene/collider_motion.h"

namespace coppice {
namespace {

void add_sides(const scene::SceneConfig& scene, size_t i, const mpm::ColliderForce& force,
               std::vector<StatsColumn>& to) {
  const Vec3d half = scene.colliders[i].half_size;
  for (int side = 0; side < 2 * scene.dim; ++side) {
    const int axis = side / 2;
    double area = 1;
    for (int k = 0; k < scene.dim; ++k)
      if (k != axis) area *= 2 * half[k];
    const Vec3d traction = force.side_force_N[static_cast<size_t>(side)] / area;
    const bool is_max = side % 2 == 1;
    const std::string name = fmt::format("collider{}_{}_{}", i, "xyz"[axis], is_max ? "max" : "min");
    to.push_back({name + "_normal_Pa", is_max ? -traction[axis] : traction[axis]});
    for (int k = 0; k < scene.dim; ++k)
      if (k != axis) to.push_back({fmt::format("{}_shear_{}_Pa", name, "xyz"[k]), traction[k]});
  }
}

void add_plane(const scene::SceneConfig& scene, size_t i, const mpm::ColliderForce& force, double time_s,
               std::vector<StatsColumn>& to) {
  const scene::Collider& plane = scene.colliders[i];
  const scene::RigidPose pose = scene::pose_at(plane, time_s - 0.5 * scene.time.frame_dt_s);
  const Vec3d normal = pose.world_from_local.cast<double>() * plane.normal;
  const double area = plane_area_in_domain(scene, pose.center, normal);
  const Vec3d traction = area > 0 ? Vec3d(force.force_N / area) : Vec3d(Vec3d::Zero());
  const double along = traction.dot(normal);
  const Vec3d shear = traction - along * normal;
  to.push_back({fmt::format("collider{}_normal_Pa", i), -along});
  for (int k = 0; k < scene.dim; ++k)
    to.push_back({fmt::format("collider{}_shear_{}_Pa", i, "xyz"[k]), shear[k]});
}

// Returns the part of a convex polygon in which `side` of a corner is not negative; side() is linear.
template <class Side>
std::vector<Vec3d> cut(const std::vector<Vec3d>& corners, Side side) {
  std::vector<Vec3d> left;
  for (size_t i = 0; i < corners.size(); ++i) {
    const Vec3d &a = corners[i], &b = corners[(i + 1) % corners.size()];
    const double at_a = side(a), at_b = side(b);
    if (at_a >= 0) left.push_back(a);
    if ((at_a < 0) != (at_b < 0)) left.push_back(a + at_a / (at_a - at_b) * (b - a));
  }
  return left;
}

}  // namespace

double plane_area_in_domain(const scene::SceneConfig& scene, const Vec3d& point, const Vec3d& normal) {
  Vec3d low = scene.domain.min, high = scene.domain.max;
  if (scene.dim == 2) low.z() = -0.5, high.z() = 0.5;  // a metre of depth
  const Vec3d middle = 0.5 * (low + high);
  const double reach = (high - low).norm();
  const Vec3d foot = middle - (middle - point).dot(normal) * normal;
  const Vec3d u = normal.unitOrthogonal(), v = normal.cross(u);
  std::vector<Vec3d> corners{foot + reach * (u + v), foot + reach * (v - u), foot - reach * (u + v),
                             foot + reach * (u - v)};
  for (int k = 0; k < 3; ++k) {
    corners = cut(corners, [&](const Vec3d& x) { return x[k] - low[k]; });
    corners = cut(corners, [&](const Vec3d& x) { return high[k] - x[k]; });
  }
  Vec3d twice = Vec3d::Zero();
  for (size_t i = 2; i < corners.size(); ++i)
    twice += (corners[i - 1] - corners[0]).cross(corners[i] - corners[0]);
  return 0.5 * twice.norm();
}

void add_tractions(const scene::SceneConfig& scene, size_t collider, const mpm::ColliderForce& force,
                   double time_s, std::vector<StatsColumn>& to) {
  if (!scene.colliders[collider].tractions) return;
  if (scene.colliders[collider].shape == scene::ColliderShape::kBox)
    add_sides(scene, collider, force, to);
  else
    add_plane(scene, collider, force, time_s, to);
}

}  // namespace coppice
