// Turntable, pan, dolly, flight and framing.
#include "apps/viewer/camera_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace coppice::viewer {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;
constexpr float kMostPitch = 0.495f * kPi;  // short of the pole, where "up" has no direction
constexpr float kTurnsPerHeight = 0.5f;     // a drag over the viewport's height turns by half a circle
constexpr float kPerNotch = 0.9f;
constexpr float kLeastFov_deg = 5, kMostFov_deg = 120;
constexpr float kFlights_per_s = 0.4f;               // of what was framed, flown through in a second
constexpr float kNearest = 1e-3f, kFarthest = 1e3f;  // of what was framed
constexpr float kMargin = 0.94f;                     // of the frame, filled by what is framed

}  // namespace

void CameraControl::begin(const render::Camera& camera) {
  camera.validate();
  camera_ = camera;
  camera_.up = Vec3f::UnitY();
  pivot_ = camera.look_at;
  const Vec3f back = camera.position - camera.look_at;
  scale_m_ = is_flat() ? camera.height_m : back.norm();
  arm_ = Vec3f(0, 0, back.norm());
  const Vec3f direction = back.normalized();
  yaw_ = is_flat() ? 0 : std::atan2(direction.x(), direction.z());
  pitch_ =
      is_flat() ? 0 : std::clamp(std::asin(std::clamp(direction.y(), -1.0f, 1.0f)), -kMostPitch, kMostPitch);
  has_begun_ = true;
  place();
  moved();
  is_led_by_hand_ = false;
}

void CameraControl::set_viewport(float width, float height) {
  if (!(width > 0 && height > 0)) return;
  width_ = width;
  height_ = height;
}

Mat3f CameraControl::world_from_camera() const {
  const Vec3f back(std::sin(yaw_) * std::cos(pitch_), std::sin(pitch_), std::cos(yaw_) * std::cos(pitch_));
  const Vec3f right(std::cos(yaw_), 0, -std::sin(yaw_));
  Mat3f axes;
  axes << right, back.cross(right), back;
  return axes;
}

void CameraControl::place() {
  const Mat3f axes = world_from_camera();
  camera_.position = pivot_ + axes * arm_;
  camera_.look_at = camera_.position - axes.col(2) * pivot_depth();
}

// Returns how far the pivot lies in front of the camera; a pivot beside it counts as near.
float CameraControl::pivot_depth() const { return std::max(arm_.z(), kNearest * scale_m_); }

float CameraControl::metres_per_pixel() const {
  const float half = camera_.half_extent(1).y() * (is_flat() ? 1 : pivot_depth());
  return 2 * half / height_;
}

void CameraControl::turn_to(float yaw, float pitch) {
  yaw_ = std::remainder(yaw, 2 * kPi);
  pitch_ = std::clamp(pitch, -kMostPitch, kMostPitch);
  place();
  moved();
}

void CameraControl::orbit(const Vec2f& pixels) {
  if (is_flat()) return pan(pixels);
  const float radians = 2 * kPi * kTurnsPerHeight / height_;
  turn_to(yaw_ - pixels.x() * radians, pitch_ + pixels.y() * radians);
}

void CameraControl::pan(const Vec2f& pixels) {
  const float m = metres_per_pixel();
  pivot_ += world_from_camera() * Vec3f(-pixels.x() * m, pixels.y() * m, 0);
  place();
  moved();
}

void CameraControl::dolly(float notches, const Vec2f& at) {
  const float wanted = std::pow(kPerNotch, notches);
  if (is_flat()) {
    const float before = metres_per_pixel();
    camera_.height_m = std::clamp(camera_.height_m * wanted, kNearest * scale_m_, kFarthest * scale_m_);
    const float less = before - metres_per_pixel();
    pivot_ += Vec3f((at.x() - 0.5f * width_) * less, (0.5f * height_ - at.y()) * less, 0);
  } else {
    const float distance = arm_.norm();
    arm_ *= std::clamp(distance * wanted, kNearest * scale_m_, kFarthest * scale_m_) / distance;
  }
  place();
  moved();
}

void CameraControl::change_fov(float notches) {
  if (is_flat()) return;
  const float fov = camera_.fov_deg * std::pow(kPerNotch, notches);
  camera_.fov_deg = std::clamp(fov, kLeastFov_deg, kMostFov_deg);
  moved();
}

void CameraControl::set_pivot(const Vec3f& point) {
  if (is_flat() || !point.allFinite()) return;
  const Vec3f arm = world_from_camera().transpose() * (camera_.position - point);
  if (arm.norm() < kNearest * scale_m_) return;
  pivot_ = point;
  arm_ = arm;
  is_led_by_hand_ = true;
  place();
}

void CameraControl::advance(float seconds) {
  still_s_ = std::min(still_s_ + seconds, kSettle_s);
  if (is_flat() || flight_.isZero()) return;
  pivot_ += world_from_camera() * flight_.normalized() * (kFlights_per_s * scale_m_ * seconds);
  place();
  moved();
}

void CameraControl::frame(const Aabb3f& box) {
  if (!has_begun_ || box.is_empty() || !box.min.allFinite() || !box.max.allFinite()) return;
  const Vec3f half_size = (0.5f * box.size()).cwiseMax(1e-6f);
  const float aspect = width_ / height_;
  pivot_ = box.center();
  if (is_flat()) {
    camera_.height_m = 2 / kMargin * std::max(half_size.y(), half_size.x() / aspect);
    scale_m_ = camera_.height_m;
    arm_ = Vec3f(0, 0, box.size().z() + camera_.height_m);
  } else {
    const Vec2f half = camera_.half_extent(aspect) * kMargin;
    const Mat3f camera_from_world = world_from_camera().transpose();
    float distance = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const Vec3f sign((corner & 1) != 0 ? 1 : -1, (corner & 2) != 0 ? 1 : -1, (corner & 4) != 0 ? 1 : -1);
      const Vec3f q = camera_from_world * half_size.cwiseProduct(sign);
      distance = std::max({distance, q.z() + std::abs(q.x()) / half.x(), q.z() + std::abs(q.y()) / half.y()});
    }
    scale_m_ = distance;
    arm_ = Vec3f(0, 0, distance);
  }
  place();
  moved();
}

namespace {

std::string text_of(const render::Camera& camera) {
  const auto vector = [](const Vec3f& v) {
    return fmt::format("[{:.6g}, {:.6g}, {:.6g}]", v.x(), v.y(), v.z());
  };
  return fmt::format("position = {}\ntarget = {}\nfov_deg = {:.6g}\n", vector(camera.position),
                     vector(camera.look_at), camera.fov_deg);
}

}  // namespace

std::string CameraControl::text() const {
  if (is_flat()) return "# a 2-D scene is seen from the front and has no [output.camera]\n";
  return "[output.camera]\n" + text_of(camera_);
}

void put_key(std::vector<render::CameraKey>& keys, const render::CameraKey& key) {
  const auto at = std::ranges::lower_bound(keys, key.time_s, {}, &render::CameraKey::time_s);
  if (at != keys.end() && at->time_s == key.time_s)
    *at = key;
  else
    keys.insert(at, key);
}

std::string keyframes_text(std::span<const render::CameraKey> keys) {
  std::string text;
  for (const render::CameraKey& key : keys)
    text += fmt::format("{}[[output.camera.keyframe]]\ntime = {}\n{}", text.empty() ? "" : "\n", key.time_s,
                        text_of(key.camera));
  return text;
}

}  // namespace coppice::viewer
