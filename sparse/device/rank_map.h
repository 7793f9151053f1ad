// Tells kernels which rank owns a cell of a tree that is cut over ranks (sparse/ranks/cell_owners.h).
//
// Device-clean.
#pragma once
#include "sparse/device/space_curve.h"

namespace coppice::device {

struct RankMap {
  const uint64_t* ends;  // of each rank's part of the curve, by rank, in device memory
  uint32_t num_ranks;
  int32_t origin[3];   // the node's lowest coordinate, missing leading axes 0
  uint32_t extent[3];  // of a block, in cells of the node

  // Returns the rank of the owner of a cell of the node, which is within the domain. Cost: a binary search
  // among the ranks.
  template <int D>
  COPPICE_INLINE uint32_t owner(const int32_t (&cell)[D]) const {
    uint32_t at[3] = {0, 0, 0};
    for (int k = 0; k < D; ++k) {
      const int axis = 3 - D + k;
      at[axis] = (static_cast<uint32_t>(cell[k]) - static_cast<uint32_t>(origin[axis])) / extent[axis];
    }
    const uint64_t place = curve_place(at[0], at[1], at[2]);
    uint32_t low = 0, high = num_ranks - 1;  // the last rank has all that is left
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (place < ends[middle])
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
};

}  // namespace coppice::device
