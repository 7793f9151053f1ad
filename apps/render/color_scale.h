// Says which values the ends of a colour map stand for, and how it runs between them.
#pragma once
#include "apps/render/color_map.h"

namespace coppice::render {

// Maps a range, from its minimum to its maximum, to 0 to 1, evenly in the values or in their logarithms. A
// reversed range reverses the map; an empty one shows its middle.
class ColorScale {
 public:
  // A value that is not positive has no logarithm: such a maximum becomes 1, such a minimum 1e-4 of the
  // maximum.
  explicit ColorScale(const ScalarRange& range, bool is_logarithmic = false);

  const ScalarRange& range() const { return range_; }
  bool is_logarithmic() const { return is_logarithmic_; }
  // Returns 0 to 1; values beyond the range have its ends'. A value that is not a number gives none.
  float at(float value) const;
  float value_at(float t) const;  // the inverse
  // Returns the same range as shaders and ticks take it: of values, or of their logarithms to base 2.
  ScalarRange even_range() const { return even_; }

 private:
  ScalarRange range_, even_;
  bool is_logarithmic_;
  float scale_ = 0, middle_ = 0.5f;
};

}  // namespace coppice::render
