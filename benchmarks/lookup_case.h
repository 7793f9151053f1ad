// The stencil benchmark computes on this: which voxels are active, and what is in them at first.
//
// Device-clean: the tree is filled by a kernel, the peers on the host, both from here.
#pragma once
#include <cstdint>

#include "core/device_macros.h"

namespace coppice::bench {

// The voxels of a cube [center - half, center + half)^3; of those, in a shell, the ones whose squared
// distance from the center lies between the two numbers.
struct Region {
  int32_t center, half;
  int32_t inner2, outer2;  // voxels^2, exclusive; outer2 = 0: the whole cube

  COPPICE_INLINE int32_t first() const { return center - half; }
  COPPICE_INLINE int32_t side() const { return 2 * half; }
  COPPICE_INLINE bool contains(int32_t x, int32_t y, int32_t z) const {
    if (outer2 == 0) return true;
    const int32_t dx = x - center, dy = y - center, dz = z - center;
    const int32_t distance2 = dx * dx + dy * dy + dz * dz;
    return distance2 > inner2 && distance2 < outer2;
  }
};

// Whole numbers, exact in a float: differences between programs come from the stencil alone.
COPPICE_INLINE float initial_value(int32_t x, int32_t y, int32_t z) {
  return static_cast<float>((x * 131 + y * 17 + z * 7) % 1000);
}

constexpr float kDiffusion = 0.1f;

}  // namespace coppice::bench
