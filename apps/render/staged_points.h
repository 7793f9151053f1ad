// Makes points ready for the graphics device: in drawing order, with indices of colours instead of
// values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "apps/render/point_layer.h"
#include "apps/render/point_order.h"
#include "core/math.h"

namespace coppice::render {

// Shaders read this from u_particles.
struct StagedPoint {
  Vec3f position;        // m
  uint32_t color_index;  // into the table of colours
};
static_assert(sizeof(StagedPoint) == 16);

struct StagedPoints {
  PointOrder order;
  std::vector<StagedPoint> points;             // StagedPoint[n_points], in `order`
  std::vector<std::array<uint8_t, 4>> colors;  // u8[n_colors][4], sRGB; the last is kBadValueColor
  std::vector<Vec3f> sample;                   // m; up to 1024 finite positions, from all over the set
  ScalarRange range;                           // what the ends of the map stand for
  size_t n_bad_positions = 0;                  // that are not finite: they are not drawn
  size_t n_bad_values = 0;                     // that are not finite, or no index of a category
  float radius_m = 0.0f;
};

// Keeps the memory of `out`. Uses all threads: 16 bytes read and written per point. Throws
// Error(kInvalidArgument) for a radius that is not positive, for flags that are not as many as points, and
// for categories without a palette.
void stage_points(const PointLayer& layer, StagedPoints* out);

}  // namespace coppice::render
