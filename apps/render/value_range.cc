// Percentiles of a sample, and values of bricks.
#include "apps/render/value_range.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "apps/render/scatter.h"
#include "core/check.h"

namespace coppice::render {
namespace {

constexpr size_t kMaxSample = 65536;
constexpr size_t kCellsOfBrick = size_t{kBrickCells} * kBrickCells * kBrickCells;

float value_at(float percent, std::vector<float>* values) {
  const double last = static_cast<double>(values->size() - 1);
  const auto rank = static_cast<std::ptrdiff_t>(std::lround(last * static_cast<double>(percent) / 100.0));
  const auto nth = values->begin() + rank;
  std::nth_element(values->begin(), nth, values->end());
  return *nth;
}

// Finds the range of n values: value(i) is one, and is_wanted() tells those that count.
template <class Value, class IsWanted>
ScalarRange range_of(size_t n, const Percentiles& at, const Value& value, const IsWanted& is_wanted) {
  COPPICE_CHECK(0.0f <= at.low && at.low <= at.high && at.high <= 100.0f, "percentiles {} and {}", at.low,
                at.high);
  const size_t step = std::max<size_t>(1, (n + kMaxSample - 1) / kMaxSample);
  std::vector<float> values;
  values.reserve(n / step + 1);
  for (size_t i = 0; i < n; i += step) {
    // One of each `step` values, a random one: the n-th always could be a special one.
    const float v = value(std::min(i + scatter(i) % step, n - 1));
    if (std::isfinite(v) && is_wanted(v)) values.push_back(v);
  }
  if (values.empty()) return {};
  const float low = value_at(at.low, &values);
  return {low, value_at(at.high, &values)};
}

float float_of_half(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), static_cast<int>(exponent) - 25);
}

// Returns one of a brick's 512 cells, without its apron.
float cell_of(const BrickVolume& bricks, size_t brick, size_t cell) {
  const size_t x = cell / 64, y = cell / 8 % 8, z = cell % 8;
  const std::byte* const at = bricks.values_of(brick).data() +
                              ((x * kBrickSide + y) * kBrickSide + z) * bytes_per_value(bricks.format);
  if (bricks.format == BrickFormat::kHalf) {
    uint16_t half = 0;
    std::memcpy(&half, at, sizeof half);
    return float_of_half(half);
  }
  float value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool is_finite(const BrickStats& s) { return std::isfinite(s.min) && std::isfinite(s.max); }

}  // namespace

ScalarRange percentile_range(std::span<const PackedPoint> points, const Percentiles& at, bool positive) {
  return range_of(
      points.size(), at, [&](size_t i) { return points[i].value; },
      [&](float v) { return !positive || v > 0; });
}

ScalarRange percentile_range(const BrickVolume& bricks, const Percentiles& at, bool positive) {
  return range_of(
      bricks.size() * kCellsOfBrick, at,
      [&](size_t i) { return cell_of(bricks, i / kCellsOfBrick, i % kCellsOfBrick); },
      [&](float v) { return positive ? v > 0 : v != 0; });
}

ScalarRange whole_range(const BrickVolume& bricks) {
  ScalarRange r{0, 0};
  for (const BrickStats& s : bricks.stats) {
    if (!is_finite(s)) continue;
    r.min = std::min(r.min, s.min), r.max = std::max(r.max, s.max);
  }
  if (r.min == r.max) r.max = r.min + 1;
  return r;
}

size_t count_not_finite(const BrickVolume& bricks) {
  size_t n = 0;
  for (size_t brick = 0; brick < bricks.size(); ++brick) {
    if (is_finite(bricks.stats[brick])) continue;
    for (size_t cell = 0; cell < kCellsOfBrick; ++cell) n += !std::isfinite(cell_of(bricks, brick, cell));
  }
  return n;
}

}  // namespace coppice::render
