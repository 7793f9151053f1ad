// Control colours of the maps and their interpolation.
#include "apps/render/color_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/check.h"

namespace coppice::render {
namespace {

Rgb from_hex(uint32_t hex) {
  const auto channel = [hex](int shift) { return static_cast<float>((hex >> shift) & 0xffu) / 255.0f; };
  return {channel(16), channel(8), channel(0)};
}

// sRGB 0xrrggbb at equal distances. Lightness rises evenly in the sequential maps.
constexpr std::array<uint32_t, 9> kViridisColors = {0x450356, 0x472e7b, 0x3b538b, 0x2d718e, 0x228d8d,
                                                    0x28ab82, 0x5dc863, 0xabdb33, 0xfbe626};
constexpr std::array<uint32_t, 9> kInfernoColors = {0x020206, 0x200c4b, 0x560f6d, 0x882268, 0xbb3755,
                                                    0xe35a32, 0xf98d0c, 0xf8cb36, 0xfbfda2};
constexpr std::array<uint32_t, 9> kMagmaColors = {0x020206, 0x1e1148, 0x51137b, 0x822681, 0xb6377a,
                                                  0xe65163, 0xfb8761, 0xfec388, 0xfbfcc0};
constexpr std::array<uint32_t, 9> kTurboColors = {0x33195a, 0x4467e0, 0x2aafee, 0x1fe3b4, 0x7ffb57,
                                                  0xd3e535, 0xfba238, 0xdf4a0e, 0x7d0a04};
constexpr std::array<uint32_t, 7> kCoolwarmColors = {0x3c4ec2, 0x7396f5, 0xaec9fc, 0xdddddd,
                                                     0xf5bea5, 0xe3765d, 0xb50a28};
constexpr std::array<uint32_t, 2> kGrayColors = {0x101010, 0xf4f4f4};

std::span<const uint32_t> control_colors(ColorMap map) {
  switch (map) {
    case ColorMap::kViridis:
      return kViridisColors;
    case ColorMap::kInferno:
      return kInfernoColors;
    case ColorMap::kMagma:
      return kMagmaColors;
    case ColorMap::kTurbo:
      return kTurboColors;
    case ColorMap::kCoolwarm:
      return kCoolwarmColors;
    case ColorMap::kGray:
      break;
  }
  COPPICE_DCHECK(map == ColorMap::kGray, "colour map {}", static_cast<int>(map));
  return kGrayColors;
}

// Catmull-Rom: passes through b (u = 0) and c (u = 1) with a continuous slope.
Rgb spline(const Rgb& a, const Rgb& b, const Rgb& c, const Rgb& d, float u) {
  const Rgb linear = 0.5f * (c - a);
  const Rgb square = a - 2.5f * b + 2.0f * c - 0.5f * d;
  const Rgb cube = 0.5f * (d - a) + 1.5f * (b - c);
  return b + u * (linear + u * (square + u * cube));
}

}  // namespace

uint32_t pack_color(const Rgb& color) {
  const auto channel = [](float c) {
    return static_cast<uint32_t>(std::lround(std::clamp(c, 0.0f, 1.0f) * 255.0f));
  };
  return channel(color.x()) | channel(color.y()) << 8 | channel(color.z()) << 16;
}

Rgb color_at(ColorMap map, float t) {
  if (std::isnan(t)) return Rgb::Constant(0.5f);
  const std::span<const uint32_t> colors = control_colors(map);
  const int last = static_cast<int>(colors.size()) - 1;
  const float x = std::clamp(t, 0.0f, 1.0f) * static_cast<float>(last);
  const int i = std::min(static_cast<int>(x), last - 1);
  const auto at = [&](int k) { return from_hex(colors[static_cast<size_t>(std::clamp(k, 0, last))]); };
  const Rgb color = spline(at(i - 1), at(i), at(i + 1), at(i + 2), x - static_cast<float>(i));
  return color.cwiseMax(0.0f).cwiseMin(1.0f);
}

std::string_view name_of(ColorMap map) {
  constexpr std::array<std::string_view, 6> kNames = {"viridis", "inferno",  "magma",
                                                      "turbo",   "coolwarm", "gray"};
  return kNames[static_cast<size_t>(map)];
}

std::span<const Rgb> default_palette() {
  static const std::array<Rgb, 8> palette = {from_hex(0xf0563f), from_hex(0xdde7f1), from_hex(0x3089e0),
                                             from_hex(0xdcb06a), from_hex(0xb97a56), from_hex(0x70513c),
                                             from_hex(0x54c17c), from_hex(0xa678de)};
  return palette;
}

}  // namespace coppice::render
