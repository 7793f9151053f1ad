// The GPU benchmark computes on these: this says which cells are active, and in which order they are
// written.
//
// Device-clean: trees are filled by kernels, results are checked on the host, both from here.
#pragma once
#include <cstdint>

#include "benchmarks/lookup_case.h"
#include "benchmarks/sparse_case.h"

namespace coppice::bench {

// Cells of a cube that are active: all, or one in ten by a hash, leaf by leaf or cell by cell.
struct Occupancy {
  int32_t unit;  // cells per axis that are active together; 0: all cells are active

  COPPICE_INLINE bool contains(int32_t x, int32_t y, int32_t z) const {
    return unit == 0 || is_occupied(x / unit + z / unit * 1031, y / unit);
  }
};

// A permutation of the numbers below 2^bits, without locality.
COPPICE_INLINE uint32_t scramble(uint32_t i, int32_t bits) {
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  for (int round = 0; round < 2; ++round) {
    i ^= i >> (bits / 2);
    i = (i * 0x9E3779B1u) & mask;
  }
  return i ^ (i >> (bits / 2));
}

// The squares of 2^log2_side cells per axis that are filled one after another: four in a row.
struct Square {
  int32_t index, log2_side;

  COPPICE_INLINE int32_t x(uint32_t at) const {
    return ((index / 4) << log2_side) + static_cast<int32_t>(at >> log2_side);
  }
  COPPICE_INLINE int32_t y(uint32_t at) const {
    return ((index % 4) << log2_side) + static_cast<int32_t>(at & ((uint32_t{1} << log2_side) - 1));
  }
};

}  // namespace coppice::bench
