// These are perspective and orthographic cameras, and ways to place one so that a domain fills the frame.
//
// World space is in metres, y up by default. View space: x right, y up, the camera looks along -z. Clip space
// is OpenGL's. Pixels: x right, y down from the frame's top-left corner, centres at half-integers.
#pragma once

#include "core/math.h"

namespace coppice::render {

enum class Projection { kPerspective, kOrthographic };

struct ClipPlanes {
  float near_m;
  float far_m;
};

struct Camera {
  Projection projection = Projection::kPerspective;
  Vec3f position = {0.0f, 0.0f, 3.0f};  // m
  Vec3f look_at = Vec3f::Zero();        // m
  Vec3f up = Vec3f::UnitY();            // need not be unit or perpendicular to the view
  float fov_deg = 35.0f;                // vertical; perspective
  float height_m = 1.0f;                // what the frame's height shows; orthographic

  // Throws Error(kInvalidArgument) when anything is not finite, position equals look_at, or fov_deg or
  // height_m cannot be.
  void validate() const;

  Mat4f view_from_world() const;
  Mat4f clip_from_view(float aspect, const ClipPlanes& planes) const;
  // Returns half of what the frame shows across and up: as tangents (perspective) or in metres
  // (orthographic).
  Vec2f half_extent(float aspect) const;
  // Returns the tightest planes in front of and behind all of `bounds`, with some slack.
  ClipPlanes planes_around(const Aabb3f& bounds) const;
  // Returns where a point appears in a frame of width x height pixels; meaningless behind a perspective
  // camera.
  Vec2f pixel_from_world(const Vec3f& point, int width, int height) const;
};

// Returns a camera that sees the whole domain, from the front, a little from the right and from above. The
// wider its vertical angle of view, the nearer it is.
Camera frame_domain_3d(const Aabb3f& domain, float aspect, float fov_deg = 30.0f);
// Returns a camera that sees the domain's x-y rectangle, with a margin, along -z.
Camera frame_domain_2d(const Aabb3f& domain, float aspect);

}  // namespace coppice::render
