// The right side of the Poisson benchmark, on a cube of cells: noise, which has all frequencies.
//
// Device-clean.
#pragma once
#include <stdint.h>

struct CoppicePoissonCase {
  static double source(int32_t x, int32_t y, int32_t z) {
    uint32_t s = 7919u * static_cast<uint32_t>(x) + 104729u * static_cast<uint32_t>(y) +
                 1299709u * static_cast<uint32_t>(z);
    for (int k = 0; k < 3; ++k) s = s * 1664525u + 1013904223u, s ^= s >> 15;
    return static_cast<double>(s) / 4294967296.0 - 0.5;
  }
};
