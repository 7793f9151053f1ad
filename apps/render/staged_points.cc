// Colour indices, counts and order of points.
#include "apps/render/staged_points.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "apps/render/color_scale.h"
#include "apps/render/value_range.h"
#include "core/error.h"

namespace coppice::render {
namespace {

constexpr size_t kMapColors = 256;
constexpr size_t kMaxSample = 1024;
// A position so far that every camera clips it, whose square is still finite in shaders.
constexpr float kNowhere = 1e18f;

std::array<uint8_t, 4> to_bytes(const Rgb& color) {
  return std::bit_cast<std::array<uint8_t, 4>>(pack_color(color) | 0xff000000u);
}

void require_drawable(const PointLayer& layer) {
  if (!(layer.radius_m > 0.0f && std::isfinite(layer.radius_m))) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a particle's radius of {} m: it must be positive", layer.radius_m));
  }
  if (!layer.is_hidden.empty() && layer.is_hidden.size() != layer.points.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} flags of {} particles", layer.is_hidden.size(), layer.points.size()));
  }
  if (layer.is_categorical && layer.palette.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "particles of categories need a palette of at least one colour");
  }
}

void make_colors(const PointLayer& layer, StagedPoints* out) {
  out->colors.clear();
  if (layer.is_categorical) {
    for (const Rgb& color : layer.palette) out->colors.push_back(to_bytes(color));
  } else {
    for (size_t i = 0; i < kMapColors; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(kMapColors - 1);
      out->colors.push_back(to_bytes(color_at(layer.map, t)));
    }
  }
  out->colors.push_back(to_bytes(kBadValueColor));
}

// Turns a value into the index of its colour.
class ColorIndex {
 public:
  ColorIndex(const PointLayer& layer, const ColorScale& scale, size_t n_colors)
      : is_categorical_(layer.is_categorical), scale_(scale), bad_(static_cast<uint32_t>(n_colors - 1)) {
    if (layer.n_categories > 0) end_ = std::min(end_, static_cast<float>(layer.n_categories));
  }

  uint32_t bad() const { return bad_; }

  uint32_t operator()(float value) const {
    if (!std::isfinite(value)) return bad_;
    if (is_categorical_) {
      return value < 0.0f || value >= end_ ? bad_ : static_cast<uint32_t>(value) % bad_;
    }
    return static_cast<uint32_t>(scale_.at(value) * static_cast<float>(kMapColors - 1) + 0.5f);
  }

 private:
  bool is_categorical_;
  ColorScale scale_;
  uint32_t bad_;
  float end_ = 16777217.0f;  // of categories; beyond 2^24 a float is no exact index
};

struct BadCounts {
  size_t positions = 0;
  size_t values = 0;
};

BadCounts operator+(const BadCounts& a, const BadCounts& b) {
  return {a.positions + b.positions, a.values + b.values};
}

BadCounts store(const PointLayer& layer, const ColorIndex& color, StagedPoints* out) {
  const std::span<const PackedPoint> points = layer.points;
  const auto store_some = [&](const tbb::blocked_range<size_t>& range, BadCounts counts) {
    for (size_t i = range.begin(); i != range.end(); ++i) {
      StagedPoint staged = {points[i].position, color(points[i].value)};
      if (!staged.position.allFinite()) {
        ++counts.positions;
        staged.position = Vec3f::Constant(kNowhere);
      }
      const bool is_hidden = !layer.is_hidden.empty() && layer.is_hidden[i] != 0;
      if (is_hidden || staged.position.cwiseAbs().maxCoeff() > kNowhere)
        staged.position = Vec3f::Constant(kNowhere);
      counts.values += staged.color_index == color.bad();
      out->points[out->order.stored_from_point(i)] = staged;
    }
    return counts;
  };
  return tbb::parallel_reduce(tbb::blocked_range<size_t>(0, points.size(), 65536), BadCounts{}, store_some,
                              std::plus<>());
}

}  // namespace

void stage_points(const PointLayer& layer, StagedPoints* out) {
  require_drawable(layer);
  make_colors(layer, out);
  out->range = layer.range ? *layer.range
               : layer.is_categorical
                   ? ScalarRange{}
                   : percentile_range(layer.points, layer.percentiles, layer.is_logarithmic);
  const ColorScale scale(out->range, layer.is_logarithmic);
  out->range = scale.range();
  out->radius_m = layer.radius_m;
  out->order = PointOrder(layer.points.size());
  out->points.resize(layer.points.size());
  const ColorIndex color(layer, scale, out->colors.size());
  const BadCounts bad = store(layer, color, out);
  out->n_bad_positions = bad.positions;
  out->n_bad_values = bad.values;
  out->sample.clear();
  const size_t step = layer.points.size() / kMaxSample + 1;
  for (size_t i = 0; i < layer.points.size(); i += step) {
    if (layer.points[i].position.allFinite()) out->sample.push_back(layer.points[i].position);
  }
}

}  // namespace coppice::render
