// A curve through all cells of a grid that stays near where it is: Morton's, or Z-order. Parts of it, cut
// anywhere, are pieces of space with short borders, which trees over ranks are cut into (sparse/ranks).
//
// Device-clean.
#pragma once
#include <cstdint>

#include "core/device_macros.h"

namespace coppice::device {

inline constexpr int kCurveBits = 21;  // of each coordinate

// Returns the place of a cell on the curve; coordinates are below 2^kCurveBits.
COPPICE_INLINE uint64_t curve_place(uint32_t x, uint32_t y, uint32_t z) {
  uint64_t place = 0;
  for (int bit = 0; bit < kCurveBits; ++bit) {
    const uint32_t digit = (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1);
    place |= static_cast<uint64_t>(digit) << (3 * bit);
  }
  return place;
}

}  // namespace coppice::device
