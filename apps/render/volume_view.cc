// Checks of views, and what follows from them for the renderer.
#include "apps/render/volume_view.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "apps/render/color_scale.h"
#include "core/error.h"
#include "core/hash.h"

namespace coppice::render {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The values that fog shows: those of the texels that are not clear, and their neighbours'.
ValueRange visible_range(const VolumeStyle& style) {
  int first = kVolumeColors, last = -1;
  for (int i = 0; i < kVolumeColors; ++i) {
    if (style.opacity_at(static_cast<float>(i) / (kVolumeColors - 1)) == 0) continue;
    first = std::min(first, i), last = i;
  }
  if (last < 0) return {kInfinity, -kInfinity};
  const ColorScale scale(style.range, style.is_logarithmic);
  const auto value = [&](int texel) {
    return scale.value_at(static_cast<float>(texel) / (kVolumeColors - 1));
  };
  return {first == 0 ? -kInfinity : value(first - 1),
          last == kVolumeColors - 1 ? kInfinity : value(last + 1)};
}

}  // namespace

void VolumeView::validate() const {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); };
  camera.validate();
  const VolumeStyle& s = style;
  if (width < 1 || height < 1) refuse("a volume's picture needs pixels");
  if (!(placement.cell_m > 0) || !placement.origin_m.allFinite())
    refuse("a volume's cells need a positive size and a finite place");
  if (!(s.range.min < s.range.max) || !std::isfinite(s.range.min) || !std::isfinite(s.range.max))
    refuse("a volume's range needs a maximum above its minimum");
  if (s.absorption && !((s.absorption->array() >= 0).all() && s.absorption->allFinite()))
    refuse("a clear body's absorption needs three numbers from 0 on");
  if (s.bounds_m &&
      !((s.bounds_m->min.array() <= s.bounds_m->max.array()).all() && s.bounds_m->size().allFinite()))
    refuse("a volume's bounds need a lower and an upper corner");
  if (!std::isfinite(s.threshold)) refuse("a volume's threshold must be a number");
  for (size_t i = 0; i < s.opacity.size(); ++i) {
    const OpacityPoint& p = s.opacity[i];
    if (!(p.at >= 0 && p.at <= 1 && p.per_cell >= 0 && p.per_cell < 1) ||
        (i > 0 && p.at < s.opacity[i - 1].at))
      refuse("a volume's opacity needs points in order, from 0 to 1, each from 0 to below 1");
  }
}

ValueRange drawn_range(const VolumeStyle& style, int dim) {
  if (style.mode == VolumeMode::kFog) return visible_range(style);
  if (style.mode == VolumeMode::kSlices) return {-kInfinity, kInfinity};
  if (dim == 3) return {style.threshold, style.threshold};
  // The faces of a slab are surfaces, too.
  return style.threshold > 0 ? ValueRange{style.threshold, kInfinity}
                             : ValueRange{-kInfinity, style.threshold};
}

PixelBox pixels_of(const VolumeView& view, const Aabb3f& world) {
  const PixelBox frame{Vec2i::Zero(), Vec2i(view.width, view.height)};
  const Mat4f view_from_world = view.camera.view_from_world();
  Vec2f low = Vec2f::Constant(std::numeric_limits<float>::max()), high = -low;
  for (int i = 0; i < 8; ++i) {
    const Vec3f corner((i & 1) != 0 ? world.max.x() : world.min.x(),
                       (i & 2) != 0 ? world.max.y() : world.min.y(),
                       (i & 4) != 0 ? world.max.z() : world.min.z());
    const float ahead = -(view_from_world * corner.homogeneous()).z();
    if (view.camera.projection == Projection::kPerspective && ahead <= 1e-3f * world.size().norm())
      return frame;
    Vec2f at = view.camera.pixel_from_world(corner, view.width, view.height);
    at.y() = static_cast<float>(view.height) - at.y();
    low = low.cwiseMin(at), high = high.cwiseMax(at);
  }
  const Vec2f size(static_cast<float>(view.width), static_cast<float>(view.height));
  low = low.cwiseMax(0.0f).cwiseMin(size), high = high.cwiseMax(0.0f).cwiseMin(size);
  const Vec2i margin = Vec2i::Ones();
  return PixelBox{low.cast<int>() - margin, high.cast<int>() + 2 * margin}.within(frame);
}

uint64_t key_of(const VolumeView& v, const BrickAtlas& atlas) {
  Hasher h;
  const auto add = [&](auto... numbers) { (h.update(numbers), ...); };
  const auto add3 = [&](const Vec3f& p) { add(p.x(), p.y(), p.z()); };
  add(v.style.mode, v.style.map, v.style.range.min, v.style.range.max, v.style.threshold,
      v.style.interpolates_slices, v.style.hides_zero, v.style.is_logarithmic, v.style.opacity.size());
  for (const OpacityPoint& p : v.style.opacity) add(p.at, p.per_cell);
  for (const auto& slice : v.style.slices) add(slice.has_value(), slice.value_or(0));
  add(v.style.absorption.has_value(), v.style.bounds_m.has_value());
  add3(v.style.absorption.value_or(Vec3f::Zero()));
  if (v.style.bounds_m) add3(v.style.bounds_m->min), add3(v.style.bounds_m->max);
  add3(v.style.surface_color), add3(v.placement.origin_m), add(v.placement.cell_m);
  add(v.camera.projection, v.camera.fov_deg, v.camera.height_m, v.planes.near_m, v.planes.far_m);
  add3(v.camera.position), add3(v.camera.look_at), add3(v.camera.up);
  add(v.framebuffer, v.width, v.height, v.opaque_version, atlas.version(),
      reinterpret_cast<uintptr_t>(&atlas));
  return h.digest().low;
}

}  // namespace coppice::render
