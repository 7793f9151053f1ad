// Checks what a program gives, and puts it into an image.
#include "apps/output/write_png.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/render/color_scale.h"
#include "core/error.h"

namespace coppice::output {
namespace {

constexpr int kMostPixels = 1'000'000;  // of a side; libpng takes no more

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, why, {path});
}

// Holds the sides of a picture, and says where its pixels lie in memory.
struct Plane {
  const std::string& path;
  int width, height;
  PixelOrder order;

  size_t size() const { return static_cast<size_t>(width) * static_cast<size_t>(height); }
  size_t place_of(int x, int y_down) const {
    return order == PixelOrder::kRows ? static_cast<size_t>(width) * y_down + x
                                      : static_cast<size_t>(height) * x + (height - 1 - y_down);
  }
  // Returns the pixel that lies at a place, in words.
  std::string name_of(size_t place) const {
    const bool is_rows = order == PixelOrder::kRows;
    const size_t side = static_cast<size_t>(is_rows ? width : height), first = place / side,
                 second = place % side;
    return is_rows ? fmt::format("the pixel ({}, {}), rows downwards,", second, first)
                   : fmt::format("the pixel ({}, {})", first, second);
  }
  void check(size_t n_values) const {
    if (std::min(width, height) < 1 || std::max(width, height) > kMostPixels) {
      refuse(path, fmt::format("a picture of {} x {} pixels, expected 1 to {} on each side", width, height,
                               kMostPixels));
    }
    if (n_values != size()) {
      refuse(path, fmt::format("{} values for a picture of {} x {} pixels, expected {}", n_values, width,
                               height, size()));
    }
  }
  [[noreturn]] void refuse_not_finite(size_t place, float value) const {
    throw Error(ErrorCode::kNumeric,
                fmt::format("{} has the value {}, expected finite numbers", name_of(place), value), {path});
  }
};

render::Rgba8 opaque(const render::Rgb& color) {
  const uint32_t packed = render::pack_color(color);
  const auto channel = [packed](int shift) { return static_cast<uint8_t>(packed >> shift & 255); };
  return {channel(0), channel(8), channel(16), 255};
}

// Draws the pixel at each place in the colour that color_at(place) gives.
template <class ColorAt>
void write_pixels(const Plane& plane, const ColorAt& color_at) {
  render::Image image(plane.width, plane.height);
  for (int y = 0; y < plane.height; ++y) {
    for (int x = 0; x < plane.width; ++x) image.set_pixel(x, y, color_at(plane.place_of(x, y)));
  }
  render::write_png(image, plane.path);
}

render::ScalarRange checked_range(const std::string& path, std::span<const float> values,
                                  const ScalarColors& colors) {
  if (!colors.range) {
    const auto [least, largest] = std::minmax_element(values.begin(), values.end());
    return {*least, *largest};
  }
  if (!std::isfinite(colors.range->min) || !std::isfinite(colors.range->max)) {
    refuse(path, fmt::format("a range of colours from {} to {}, expected finite numbers", colors.range->min,
                             colors.range->max));
  }
  return *colors.range;
}

}  // namespace

void write_png(const std::string& path, int width, int height, std::span<const float> values,
               const ScalarColors& colors) {
  const Plane plane{path, width, height, colors.order};
  plane.check(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) plane.refuse_not_finite(i, values[i]);
  }
  const render::ColorScale scale(checked_range(path, values, colors), colors.is_logarithmic);
  write_pixels(plane, [&](size_t i) { return opaque(render::color_at(colors.map, scale.at(values[i]))); });
}

void write_png(const std::string& path, int width, int height, std::span<const render::Rgba8> pixels,
               PixelOrder order) {
  const Plane plane{path, width, height, order};
  plane.check(pixels.size());
  write_pixels(plane, [&](size_t i) { return pixels[i]; });
}

void write_png(const std::string& path, int width, int height, std::span<const Vec3f> pixels,
               PixelOrder order) {
  const Plane plane{path, width, height, order};
  plane.check(pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    for (const float channel : {pixels[i].x(), pixels[i].y(), pixels[i].z()}) {
      if (!std::isfinite(channel)) plane.refuse_not_finite(i, channel);
    }
  }
  write_pixels(plane, [&](size_t i) { return opaque(pixels[i]); });
}

}  // namespace coppice::output
