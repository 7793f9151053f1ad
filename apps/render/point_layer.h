// This is a set of particles to draw, each coloured by one number.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "apps/render/color_map.h"
#include "apps/render/packed_points.h"
#include "apps/render/render_scene.h"
#include "apps/render/value_range.h"

namespace coppice::render {

// Spans are read only during the call that takes the layer.
struct PointLayer {
  std::span<const PackedPoint> points;  // those whose position is not finite are skipped
  std::span<const uint8_t> is_hidden;   // u8[points.size()], not 0: it is not drawn; empty: all are
  float radius_m = 0.01f;               // of every particle
  bool is_categorical = false;          // values are indices into `palette` (modulo its size)
  size_t n_categories = 0;              // indices from here on are none; 0: each is one
  std::span<const Rgb> palette = default_palette();
  ColorMap map = ColorMap::kViridis;
  std::optional<ScalarRange> range;  // at the map's ends; none: percentile_range() of the values
  Percentiles percentiles;           // of that
  bool is_logarithmic = false;       // between the map's ends (color_scale.h)
};

// Values that are not finite, and categories that are no index, have this colour: no map or palette of
// ours comes near it.
inline const Rgb kBadValueColor = Rgb(1.0f, 0.0f, 1.0f);

}  // namespace coppice::render
