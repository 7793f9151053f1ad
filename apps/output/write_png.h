// PNG pictures of a plane that a program has on the host: of colours, or of numbers through a colour map.
//
//     const std::vector<float> heat = wait_read(field, {0, 0}, {width, height});
//     output::write_png("heat.png", width, height, heat, {.map = render::ColorMap::kInferno});
//
// A file appears whole or not at all, and replaces what was there. Errors have the path as their place:
// kInvalidArgument for sides that are no picture's and for another number of values, kNumeric for a value
// that is not finite (the first one is named), kIo where the folder is missing or the disk is full.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "apps/render/color_map.h"
#include "apps/render/image.h"
#include "core/math.h"

namespace coppice::output {

// Says how the pixels of a picture lie in memory.
enum class PixelOrder {
  kCells,  // as wait_read() gives a box of a plane: pixel [height * x + y], x to the right and y upwards
  kRows,   // as pictures lie: pixel [width * y + x], x to the right and y downwards from the top row
};

// Says how numbers become colours.
struct ScalarColors {
  render::ColorMap map = render::ColorMap::kViridis;
  std::optional<render::ScalarRange> range;  // at the map's ends, which are those of what is beyond; none:
                                             // from the least value to the largest one
  bool is_logarithmic = false;               // between the range's ends; what has no logarithm is the minimum
  PixelOrder order = PixelOrder::kCells;
};

// Writes numbers, f32[width * height].
void write_png(const std::string& path, int width, int height, std::span<const float> values,
               const ScalarColors& colors = {});
// Writes colours, u8[width * height][4]: sRGB, and alpha that is not premultiplied.
void write_png(const std::string& path, int width, int height, std::span<const render::Rgba8> pixels,
               PixelOrder order = PixelOrder::kCells);
// Writes opaque colours, f32[width * height][3]: sRGB from 0 to 1, to which what is beyond is clamped.
void write_png(const std::string& path, int width, int height, std::span<const Vec3f> pixels,
               PixelOrder order = PixelOrder::kCells);

}  // namespace coppice::output
