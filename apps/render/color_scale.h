// Which values the ends of a colour map stand for, and how it runs between them.
#pragma once
#include "apps/render/render_scene.h"

namespace coppice::render {

// From a range to 0 (its minimum) and 1 (its maximum), evenly in the values or in their logarithms. A
// reversed range reverses the map; an empty one shows its middle.
class ColorScale {
 public:
  // What is not positive has no logarithm: a maximum that is not becomes 1, a minimum 1e-4 of the maximum.
  explicit ColorScale(const ScalarRange& range, bool is_logarithmic = false);

  const ScalarRange& range() const { return range_; }
  bool is_logarithmic() const { return is_logarithmic_; }
  // 0 to 1; values beyond the range have its ends'. Not a number for one that is none.
  float at(float value) const;
  float value_at(float t) const;  // the inverse
  // The same range as shaders and ticks take it: of values, or of their logarithms to base 2.
  ScalarRange even_range() const { return even_; }

 private:
  ScalarRange range_, even_;
  bool is_logarithmic_;
  float scale_ = 0, middle_ = 0.5f;
};

}  // namespace coppice::render
