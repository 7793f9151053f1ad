// Shaders need this of a camera and the picture that it fills: matrices and sizes, by the names of
// shaders/common.glsl.
#pragma once

#include "apps/render/camera.h"
#include "apps/render/gl_objects.h"
#include "core/math.h"

namespace coppice::render {

// Two views are equal when the same scene gives the same picture in both.
struct View {
  Mat4f view_from_world;
  Mat4f clip_from_view;
  Vec2f half_extent;
  bool orthographic;
  float pixel_m;  // see shaders/common.glsl
  Vec2f size_px;

  // Renderers that share a depth buffer need the same planes. Throws Error(kInvalidArgument) for a picture
  // without pixels and for a camera that cannot be.
  View(const Camera& camera, const ClipPlanes& planes, int width_px, int height_px);

  int width_px() const { return static_cast<int>(size_px.x()); }
  int height_px() const { return static_cast<int>(size_px.y()); }
  bool operator==(const View& other) const;
};

// Sets the uniforms of shaders/common.glsl that depend on the view. The program must be in use.
void set_view(const GlProgram& program, const View& view);

}  // namespace coppice::render
