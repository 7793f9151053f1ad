// How a volume looks, and where it is: what a program says of a field, without OpenGL.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "apps/render/color_map.h"
#include "core/math.h"

namespace coppice::render {

enum class VolumeMode { kFog, kSurface, kSlices };

// How opaque one cell's length of fog is, 0 to below 1, at a value: 0 the range's minimum, 1 its maximum.
struct OpacityPoint {
  float at;
  float per_cell;
};

struct VolumeStyle {
  VolumeMode mode = VolumeMode::kFog;
  // Fog and slices: values by colour. Values beyond the range have the colour, and the opacity, of its ends.
  ColorMap map = ColorMap::kInferno;
  ScalarRange range;
  bool is_logarithmic = false;  // between the range's ends (color_scale.h)
  std::vector<OpacityPoint> opacity = {{0.0f, 0.0f}, {1.0f, 0.06f}};  // ascending; joined by lines
  // Where values pass the threshold. Other solid things stand before and behind it as its depth says.
  float threshold = 0.5f;
  Rgb surface_color = Rgb(0.30f, 0.58f, 0.90f);
  // How much of red, green and blue a cell's length of a clear body takes away: exp(-absorption * cells)
  // passes. It mirrors the sky by Fresnel's law, and its own colour is not used. None: the surface is opaque.
  std::optional<Vec3f> absorption;
  // In the world, m: what is outside is cut off, and a body that reaches a side has a face there. None:
  // nothing is.
  std::optional<Aabb3f> bounds_m;
  // Planes across the axes, in cells of the tree: 0.5 is the middle of cell 0. Drawn where there are bricks.
  std::array<std::optional<float>, 3> slices;
  bool interpolates_slices = true;
  // Cells whose value is zero, as that of all inactive ones is, are left out of slices.
  bool hides_zero = true;

  // At 0 the range's minimum to 1 its maximum.
  float opacity_at(float at) const;
};

// Where the tree's cells are in the world. Cell (0, 0, 0) lies between origin_m and origin_m + cell_m.
struct VolumePlacement {
  Vec3f origin_m = Vec3f::Zero();
  float cell_m = 1.0f;
};

}  // namespace coppice::render
