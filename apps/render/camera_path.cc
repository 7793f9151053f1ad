// A camera that moves through keyframes (see camera_path.h).
#include "apps/render/camera_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"

namespace coppice::render {
namespace {

// A camera is led by these numbers: where it looks at, the direction that it stands
// in from there, and how far away.
enum Part { kLookX, kLookY, kLookZ, kYaw, kPitch, kLogDistance, kFov, kParts };
using Parts = std::array<double, kParts>;

Parts parts_of(const Camera& camera) {
  const Vec3d look = camera.look_at.cast<double>(), arm = camera.position.cast<double>() - look;
  return {look.x(),
          look.y(),
          look.z(),
          std::atan2(arm.x(), arm.z()),
          std::atan2(arm.y(), std::hypot(arm.x(), arm.z())),
          std::log(arm.norm()),
          camera.fov_deg};
}

Camera camera_of(const Parts& p, Camera like) {
  const Vec3d look(p[kLookX], p[kLookY], p[kLookZ]);
  const Vec3d direction(std::cos(p[kPitch]) * std::sin(p[kYaw]), std::sin(p[kPitch]),
                        std::cos(p[kPitch]) * std::cos(p[kYaw]));
  like.look_at = look.cast<float>();
  like.position = (look + std::exp(p[kLogDistance]) * direction).cast<float>();
  like.fov_deg = static_cast<float>(p[kFov]);
  return like;
}

// Slopes would let curves pass the values between which they lie; at the poles, or where there is no angle
// left, that is a camera that turns over.
Parts bounded(Parts p) {
  constexpr double kPole = 0.5 * std::numbers::pi - 1e-3;
  p[kPitch] = std::clamp(p[kPitch], -kPole, kPole);
  p[kFov] = std::clamp(p[kFov], 1.0, 150.0);
  return p;
}

}  // namespace

Camera camera_at(std::span<const CameraKey> keys, double time_s) {
  if (keys.empty()) throw Error(ErrorCode::kInvalidArgument, "a camera's path needs at least one key");
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i].time_s > keys[i - 1].time_s) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the times of a camera's keys must go up, not from {} s to {} s",
                            keys[i - 1].time_s, keys[i].time_s));
  }
  if (!(time_s > keys.front().time_s)) return keys.front().camera;
  if (time_s >= keys.back().time_s) return keys.back().camera;

  std::vector<Parts> parts;
  for (const CameraKey& key : keys) {
    parts.push_back(parts_of(key.camera));
    if (parts.size() == 1) continue;
    double& yaw = parts.back()[kYaw];
    yaw = parts[parts.size() - 2][kYaw] +
          std::remainder(yaw - parts[parts.size() - 2][kYaw], 2 * std::numbers::pi);
  }
  const size_t next =
      static_cast<size_t>(std::ranges::upper_bound(keys, time_s, {}, &CameraKey::time_s) - keys.begin());
  const size_t last = next - 1;
  const double duration_s = keys[next].time_s - keys[last].time_s;
  const double u = (time_s - keys[last].time_s) / duration_s, uu = u * u, uuu = uu * u;
  const auto slope = [&](size_t i, int part) {  // per second
    if (i == 0 || i + 1 == keys.size()) return 0.0;
    return (parts[i + 1][part] - parts[i - 1][part]) / (keys[i + 1].time_s - keys[i - 1].time_s);
  };
  Parts now;
  for (int part = 0; part < kParts; ++part) {
    now[part] = (2 * uuu - 3 * uu + 1) * parts[last][part] + (3 * uu - 2 * uuu) * parts[next][part] +
                duration_s * ((uuu - 2 * uu + u) * slope(last, part) + (uuu - uu) * slope(next, part));
  }
  return camera_of(bounded(now), keys[last].camera);
}

}  // namespace coppice::render
