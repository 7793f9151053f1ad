// A scene's particles as points (see scene_points.h).
#include "apps/run/scene_points.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/run/frame_view.h"

namespace coppice {
namespace {

struct Shown {
  mpm::PointValue value;
  const char *name, *unit;
};
Shown shown_of(scene::ColorBy color) {
  switch (color) {
    case scene::ColorBy::kMaterial:
      return {mpm::PointValue::kMaterial, "material", ""};
    case scene::ColorBy::kEmitter:
      return {mpm::PointValue::kEmitter, "emitter", ""};
    case scene::ColorBy::kSpeed:
      return {mpm::PointValue::kSpeed, "speed", "m/s"};
    case scene::ColorBy::kPressure:
      return {mpm::PointValue::kPressure, "pressure", "Pa"};
    case scene::ColorBy::kVonMises:
      return {mpm::PointValue::kVonMises, "von Mises stress", "Pa"};
    case scene::ColorBy::kVolumeRatio:
      break;
  }
  return {mpm::PointValue::kVolumeRatio, "volume ratio", ""};
}

// Materials keep their own colours; emitters of one scene are told apart by the palette's order.
void choose_categories(const scene::SceneConfig& scene, mpm::PointValue value, viewer::PointSet& p) {
  const auto palette = render::default_palette();
  p.categories.clear();
  if (value == mpm::PointValue::kMaterial) {
    for (const std::string_view name : enum_names(scene::MaterialKind())) p.categories.emplace_back(name);
  } else if (value == mpm::PointValue::kEmitter) {
    for (size_t i = 0; i < scene.emitters.size(); ++i) p.categories.push_back(fmt::format("emitter[{}]", i));
  }
  p.palette.clear();
  for (size_t i = 0; i < std::max<size_t>(p.categories.size(), 1); ++i)
    p.palette.push_back(palette[i % palette.size()]);
}

}  // namespace

mpm::PointValue describe_points(const scene::SceneConfig& scene, viewer::PointSet& p) {
  const Shown shown = shown_of(scene.output.color);
  p.name = "particle", p.attribute = shown.name, p.unit = shown.unit;
  p.radius_m = particle_radius_m(scene), p.body_spacing_m = body_spacing_m(scene);
  p.is_categorical = shown.value == mpm::PointValue::kMaterial || shown.value == mpm::PointValue::kEmitter;
  choose_categories(scene, shown.value, p);
  p.map = color_map_of(scene.output.colormap);
  p.range.reset();
  if (const auto& range = scene.output.color_range)
    p.range = render::ScalarRange{static_cast<float>(range->x()), static_cast<float>(range->y())};
  return shown.value;
}

std::string describe_particles(const scene::SceneConfig& scene) {
  std::string materials;
  for (const scene::MaterialParameters& m : scene.materials) {
    if (!materials.empty()) materials += ", ";
    materials += enum_names(scene::MaterialKind())[static_cast<size_t>(scene::kind_of_material(m))];
  }
  return fmt::format("{}-D {} on a grid of {:.6g} m", scene.dim, materials, scene.dx_m());
}

}  // namespace coppice
