// Motions between keyframes (see collider_motion.h).
#include "apps/scene/collider_motion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "apps/geometry/mesh.h"

namespace coppice::scene {
namespace {

// The change of a rotation, as an axis times an angle, rad. R = Rz Ry Rx.
Vec3d turn_between(const Vec3d& from_deg, const Vec3d& to_deg) {
  const Vec3d change = (to_deg - from_deg) * (std::numbers::pi / 180.0);
  const bool keeps_x = change.x() == 0, keeps_y = change.y() == 0, keeps_z = change.z() == 0;
  const bool has_no_z = from_deg.z() == 0 && keeps_z, has_no_y = from_deg.y() == 0 && keeps_y;
  if (keeps_x && keeps_y) return {0, 0, change.z()};
  if (keeps_x && has_no_z) return {0, change.y(), 0};
  if (has_no_y && has_no_z) return {change.x(), 0, 0};
  const Mat3f from = rotation_from_euler_degrees(from_deg.cast<float>()),
              to = rotation_from_euler_degrees(to_deg.cast<float>());
  const Eigen::AngleAxisd turn(Mat3d(to.cast<double>() * from.cast<double>().transpose()));
  return turn.angle() * turn.axis();
}

RigidMotion motion_between(const ColliderKeyframe& from, const ColliderKeyframe& to) {
  const double seconds = to.time_s - from.time_s;
  return {from.time_s, from.center, rotation_from_euler_degrees(from.rotate_deg.cast<float>()),
          (to.center - from.center) / seconds, turn_between(from.rotate_deg, to.rotate_deg) / seconds};
}

}  // namespace

RigidMotion motion_at(const Collider& c, double time_s) {
  if (c.keyframes.empty()) {
    return {0.0, c.center, rotation_from_euler_degrees(c.rotate_deg.cast<float>()), c.velocity,
            c.angular_velocity_rad_s};
  }
  // A time that a step has come to is a keyframe's up to rounding.
  const double tolerance_s = 1e-9 * std::max(1.0, std::abs(time_s));
  const auto next = std::ranges::find_if(
      c.keyframes, [&](const ColliderKeyframe& key) { return key.time_s > time_s + tolerance_s; });
  if (next != c.keyframes.begin() && next != c.keyframes.end()) return motion_between(*(next - 1), *next);
  const ColliderKeyframe& rest = next == c.keyframes.end() ? c.keyframes.back() : c.keyframes.front();
  return {time_s, rest.center, rotation_from_euler_degrees(rest.rotate_deg.cast<float>()), Vec3d::Zero(),
          Vec3d::Zero()};
}

RigidPose pose_at(const Collider& collider, double time_s) {
  const RigidMotion motion = motion_at(collider, time_s);
  const double seconds = time_s - motion.start_s;
  const Vec3d turn = seconds * motion.angular_velocity_rad_s;
  RigidPose pose{motion.center + seconds * motion.velocity, motion.world_from_local};
  if (turn.norm() > 0) {
    const Mat3f spin = Eigen::AngleAxisd(turn.norm(), turn.normalized()).toRotationMatrix().cast<float>();
    pose.world_from_local = spin * motion.world_from_local;
  }
  return pose;
}

double next_keyframe_s(const SceneConfig& scene, double time_s, double tolerance_s) {
  double next_s = std::numeric_limits<double>::infinity();
  for (const Collider& c : scene.colliders) {
    for (const ColliderKeyframe& key : c.keyframes)
      if (key.time_s > time_s + tolerance_s) next_s = std::min(next_s, key.time_s);
  }
  return next_s;
}

double fastest_point_m_s(const SceneConfig& scene, const Collider& c, double time_s) {
  const RigidMotion motion = motion_at(c, time_s);
  const Vec3d half = scene.dim == 3 ? c.half_size : Vec3d(c.half_size.x(), c.half_size.y(), 0);
  double radius = c.radius;
  switch (c.shape) {
    case ColliderShape::kSphere:
      break;
    case ColliderShape::kBox:
      radius = half.norm();
      break;
    case ColliderShape::kCapsule:
      radius = c.radius + c.half_height;
      break;
    case ColliderShape::kMesh:
      if (c.radius > 0) break;
      [[fallthrough]];  // what is outside of the domain meets nothing
    case ColliderShape::kPlane: {
      const Vec3d center = pose_at(c, time_s).center;
      radius = (scene.domain.max - center).cwiseAbs().cwiseMax((center - scene.domain.min).cwiseAbs()).norm();
    }
  }
  return motion.velocity.norm() + radius * motion.angular_velocity_rad_s.norm();
}

}  // namespace coppice::scene
