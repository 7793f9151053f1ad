// Linear and logarithmic scales.
#include "apps/render/color_scale.h"

#include <algorithm>
#include <cmath>

namespace coppice::render {
namespace {

constexpr float kLeastPart = 1e-4f;  // of a logarithmic scale's maximum

ScalarRange positive(ScalarRange range) {
  const auto is_positive = [](float v) { return v > 0 && std::isfinite(v); };
  float& largest = range.min > range.max ? range.min : range.max;
  float& least = range.min > range.max ? range.max : range.min;
  if (!is_positive(largest)) largest = 1;
  if (!is_positive(least)) least = kLeastPart * largest;
  return range;
}

}  // namespace

ColorScale::ColorScale(const ScalarRange& range, bool is_logarithmic)
    : range_(is_logarithmic ? positive(range) : range), even_(range_), is_logarithmic_(is_logarithmic) {
  if (is_logarithmic_) even_ = {std::log2(range_.min), std::log2(range_.max)};
  if (even_.min != even_.max) scale_ = 1.0f / (even_.max - even_.min), middle_ = 0;
}

float ColorScale::at(float value) const {
  if (std::isnan(value)) return value;
  // Zero and what is below it has no logarithm: it lies below every range.
  const float even = is_logarithmic_ ? std::log2(std::max(value, 0.0f)) : value;
  return std::clamp((even - even_.min) * scale_ + middle_, 0.0f, 1.0f);
}

float ColorScale::value_at(float t) const {
  const float even = even_.min + t * (even_.max - even_.min);
  return is_logarithmic_ ? std::exp2(even) : even;
}

}  // namespace coppice::render
