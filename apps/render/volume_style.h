// A program says with this how a volume looks, and where it is, without OpenGL.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "apps/render/color_map.h"
#include "core/math.h"

namespace coppice::render {

enum class VolumeMode { kFog, kSurface, kSlices };

// This says how opaque one cell's length of fog is, 0 to below 1, at a value: 0 the range's minimum, 1
// its maximum.
struct OpacityPoint {
  float at;
  float per_cell;
};

struct VolumeStyle {
  VolumeMode mode = VolumeMode::kFog;
  // Fog and slices show values by colour. Values beyond the range have the colour, and the opacity, of
  // its ends.
  ColorMap map = ColorMap::kInferno;
  ScalarRange range;
  bool is_logarithmic = false;  // between the range's ends (color_scale.h)
  std::vector<OpacityPoint> opacity = {{0.0f, 0.0f}, {1.0f, 0.06f}};  // ascending; joined by lines
  // The surface is where values pass the threshold. Its depth decides which other solid things stand
  // before it.
  float threshold = 0.5f;
  Rgb surface_color = Rgb(0.30f, 0.58f, 0.90f);
  // A clear body takes away so much of red, green and blue per cell's length: exp(-absorption * cells)
  // passes. It mirrors the sky by Fresnel's law, and its own colour is not used. None: the surface is
  // opaque.
  std::optional<Vec3f> absorption;
  // This box cuts off what is outside of it, and a body that reaches a side has a face there; in the
  // world, m. None: nothing is cut off.
  std::optional<Aabb3f> bounds_m;
  // Slices are planes across the axes, in cells of the tree: 0.5 is the middle of cell 0. They are drawn
  // where there are bricks.
  std::array<std::optional<float>, 3> slices;
  bool interpolates_slices = true;
  // Cells whose value is zero, as that of all inactive ones is, are left out of slices.
  bool hides_zero = true;

  // Returns the opacity at `at`, from 0, the range's minimum, to 1, its maximum.
  float opacity_at(float at) const;
};

// This places the tree's cells in the world: cell (0, 0, 0) lies between origin_m and origin_m + cell_m.
struct VolumePlacement {
  Vec3f origin_m = Vec3f::Zero();
  float cell_m = 1.0f;
};

}  // namespace coppice::render
