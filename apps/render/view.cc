// Matrices of a view and their uniforms.
#include "apps/render/view.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice::render {

View::View(const Camera& camera, const ClipPlanes& planes, int width_px, int height_px) {
  if (width_px < 1 || height_px < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a picture of {} x {} pixels: both must be at least 1", width_px, height_px));
  }
  camera.validate();
  const float aspect = static_cast<float>(width_px) / static_cast<float>(height_px);
  view_from_world = camera.view_from_world();
  clip_from_view = camera.clip_from_view(aspect, planes);
  half_extent = camera.half_extent(aspect);
  orthographic = camera.projection == Projection::kOrthographic;
  size_px = Vec2f(static_cast<float>(width_px), static_cast<float>(height_px));
  pixel_m = 2.0f * half_extent.y() / size_px.y();
}

// The other members follow from these.
bool View::operator==(const View& other) const {
  return view_from_world == other.view_from_world && clip_from_view == other.clip_from_view &&
         size_px == other.size_px;
}

void set_view(const GlProgram& program, const View& view) {
  program.set("u_view_from_world", view.view_from_world);
  program.set("u_clip_from_view", view.clip_from_view);
  program.set("u_half_extent", view.half_extent);
  program.set("u_orthographic", view.orthographic ? 1 : 0);
  program.set("u_target_size", view.size_px);
  program.set("u_pixel_m", view.pixel_m);
}

}  // namespace coppice::render
