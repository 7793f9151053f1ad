// Finds ranges of values for a colour map in what is drawn.
#pragma once

#include <span>

#include "apps/render/brick_pack.h"
#include "apps/render/packed_points.h"
#include "apps/render/render_scene.h"

namespace coppice::render {

struct Percentiles {
  float low = 1.0f, high = 99.0f;  // 0 to 100
  bool operator==(const Percentiles&) const = default;
};

// Returns the values at two percentiles of the finite ones, so that a few outliers do not take all
// colours; with `positive`, of those above zero. It is judged by at most 65,536 of them from all over the
// set: always the same for the same values, 1 ms for any number. Returns {0, 1} when there are none.
ScalarRange percentile_range(std::span<const PackedPoint> points, const Percentiles& at = {},
                             bool positive = false);
// Does the same for a volume's cells whose values are not zero: zero means that there is no cell.
ScalarRange percentile_range(const BrickVolume& bricks, const Percentiles& at, bool positive = false);

// Returns the range from a volume's least to its largest value, zero among them; bricks with values that
// are not finite do not count. Returns {0, 1} when all are zero.
ScalarRange whole_range(const BrickVolume& bricks);
// Counts the cells of a volume whose values are not finite. Cost: a pass over the bricks that have some.
size_t count_not_finite(const BrickVolume& bricks);

}  // namespace coppice::render
