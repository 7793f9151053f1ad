// A box of coordinates, as an argument of the kernels that fill fields.
//
// Device-clean.
#pragma once
#include <cstdint>

struct FuzzBox {
  int32_t begin[3], extent[3];
  // The place of a coordinate in an array over the box, the last axis fastest.
  int64_t index(int32_t x, int32_t y, int32_t z) const {
    return (static_cast<int64_t>(x - begin[0]) * extent[1] + (y - begin[1])) * extent[2] + (z - begin[2]);
  }
};
