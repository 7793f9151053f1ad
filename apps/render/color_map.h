// Colours: palettes of materials and colour maps of numbers.
//
// Maps are evaluated from a dozen control colours of our own choosing, joined smoothly; they follow
// the look of the maps whose names they bear without reproducing their tables.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/math.h"

namespace coppice::render {

using Rgb = Vec3f;  // sRGB-encoded, each in [0, 1]

// A map's ends stand for these values.
struct ScalarRange {
  float min = 0.0f;
  float max = 1.0f;
  bool operator==(const ScalarRange&) const = default;
};

enum class ColorMap { kViridis, kInferno, kMagma, kTurbo, kCoolwarm, kGray };

// Returns the colour at t; below 0 and above 1 the map's ends, and grey for a value that is not a number.
Rgb color_at(ColorMap map, float t);

// Eight bits a channel, 0x00bbggrr: on little-endian machines the bytes of an RGBA texel whose alpha is open.
uint32_t pack_color(const Rgb& color);

// "viridis", "inferno", "magma", "turbo", "coolwarm", "gray".
std::string_view name_of(ColorMap map);

// Colours of materials: jelly, snow, water, sand, clay, mud, then others that differ from them and from each
// other.
std::span<const Rgb> default_palette();

}  // namespace coppice::render
