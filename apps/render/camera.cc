// Camera matrices and automatic framing.
#include "apps/render/camera.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace coppice::render {
namespace {

float half_tangent(float fov_deg) { return std::tan(fov_deg * std::numbers::pi_v<float> / 360.0f); }

Vec3f corner(const Aabb3f& box, int index) {
  return {(index & 1) != 0 ? box.max.x() : box.min.x(), (index & 2) != 0 ? box.max.y() : box.min.y(),
          (index & 4) != 0 ? box.max.z() : box.min.z()};
}

}  // namespace

void Camera::validate() const {
  const bool finite = position.allFinite() && look_at.allFinite() && up.allFinite();
  if (!finite || (position - look_at).norm() == 0.0f || up.norm() == 0.0f) {
    throw Error(ErrorCode::kInvalidArgument,
                "the camera needs a finite position and target that differ, and an up direction");
  }
  const bool perspective = projection == Projection::kPerspective;
  if (perspective && !(fov_deg > 0.1f && fov_deg < 170.0f)) {
    throw Error(ErrorCode::kInvalidArgument,
                "the camera's field of view must lie between 0.1 and 170 degrees");
  }
  if (!perspective && !(height_m > 0.0f && std::isfinite(height_m))) {
    throw Error(ErrorCode::kInvalidArgument, "an orthographic camera must show a positive height");
  }
}

Mat4f Camera::view_from_world() const {
  const Vec3f back = (position - look_at).normalized();
  Vec3f right = up.cross(back);
  // Looking straight along `up`: x is to the right, as it is for who looks from the front, a little less
  // steeply.
  if (right.norm() < 1e-6f * up.norm()) right = Vec3f::UnitX() - back.x() * back;
  if (right.norm() < 1e-6f) right = back.unitOrthogonal();
  right.normalize();
  const Vec3f true_up = back.cross(right);
  Mat4f m = Mat4f::Identity();
  m.block<1, 3>(0, 0) = right.transpose();
  m.block<1, 3>(1, 0) = true_up.transpose();
  m.block<1, 3>(2, 0) = back.transpose();
  m.block<3, 1>(0, 3) = -(m.block<3, 3>(0, 0) * position);
  return m;
}

Vec2f Camera::half_extent(float aspect) const {
  const float half = projection == Projection::kPerspective ? half_tangent(fov_deg) : 0.5f * height_m;
  return {half * aspect, half};
}

Mat4f Camera::clip_from_view(float aspect, const ClipPlanes& planes) const {
  const Vec2f half = half_extent(aspect);
  const float n = planes.near_m;
  const float f = planes.far_m;
  Mat4f m = Mat4f::Zero();
  m(0, 0) = 1.0f / half.x();
  m(1, 1) = 1.0f / half.y();
  if (projection == Projection::kPerspective) {
    m(2, 2) = -(f + n) / (f - n);
    m(2, 3) = -2.0f * f * n / (f - n);
    m(3, 2) = -1.0f;
  } else {
    m(2, 2) = -2.0f / (f - n);
    m(2, 3) = -(f + n) / (f - n);
    m(3, 3) = 1.0f;
  }
  return m;
}

ClipPlanes Camera::planes_around(const Aabb3f& bounds) const {
  const Mat4f view = view_from_world();
  float nearest = std::numeric_limits<float>::max();
  float farthest = std::numeric_limits<float>::lowest();
  for (int i = 0; i < 8; ++i) {
    const float depth = -(view.block<1, 3>(2, 0).dot(corner(bounds, i)) + view(2, 3));
    nearest = std::min(nearest, depth);
    farthest = std::max(farthest, depth);
  }
  const float slack = 0.01f * std::max(farthest - nearest, 1e-3f);
  farthest += slack;
  nearest -= slack;
  if (projection == Projection::kPerspective) {
    farthest = std::max(farthest, 1e-3f);
    nearest = std::clamp(nearest, 1e-3f * farthest, 0.9f * farthest);
  }
  return {nearest, farthest};
}

Vec2f Camera::pixel_from_world(const Vec3f& point, int width, int height) const {
  const Mat4f view = view_from_world();
  const Vec3f p = view.block<3, 3>(0, 0) * point + view.block<3, 1>(0, 3);
  const Vec2f half = half_extent(static_cast<float>(width) / static_cast<float>(height));
  const float w = projection == Projection::kPerspective ? -p.z() : 1.0f;
  const Vec2f ndc = Vec2f(p.x() / (half.x() * w), p.y() / (half.y() * w));
  return {0.5f * (1.0f + ndc.x()) * static_cast<float>(width),
          0.5f * (1.0f - ndc.y()) * static_cast<float>(height)};
}

Camera frame_domain_3d(const Aabb3f& domain, float aspect, float fov_deg) {
  Camera camera;
  camera.fov_deg = fov_deg;
  camera.look_at = domain.center();
  const Vec3f to_camera = Vec3f(0.5f, 0.42f, 1.0f).normalized();
  camera.position = camera.look_at + to_camera;
  const Mat4f view = camera.view_from_world();
  // Each corner must stay inside the frame, less a margin; the farthest demand decides.
  const Vec2f half = camera.half_extent(aspect) * 0.97f;
  float distance = 0.0f;
  for (int i = 0; i < 8; ++i) {
    const Vec3f q = view.block<3, 3>(0, 0) * (corner(domain, i) - camera.look_at);
    distance = std::max({distance, q.z() + std::abs(q.x()) / half.x(), q.z() + std::abs(q.y()) / half.y()});
  }
  camera.position = camera.look_at + to_camera * distance;
  return camera;
}

Camera frame_domain_2d(const Aabb3f& domain, float aspect) {
  Camera camera;
  camera.projection = Projection::kOrthographic;
  camera.look_at = domain.center();
  const Vec3f size = domain.size();
  camera.height_m = 1.08f * std::max(size.y(), size.x() / aspect);
  camera.position = camera.look_at + Vec3f(0.0f, 0.0f, size.z() + camera.height_m);
  return camera;
}

}  // namespace coppice::render
