// A brick is 8 x 8 x 8 cells with a one-sided apron, as kernels write it and textures hold it.
//
// Device-clean.
//
//   values [9][9][9], the last axis of the tree fastest: (x, y, z) is the cell at origin + (x, y, z)
//
// Values stand at the centres of cells, so a brick has all that is needed to interpolate between the centres
// of its first cell and of the first cell behind it, on each axis.
#pragma once
#include <cstdint>

namespace coppice::render {

inline constexpr int kBrickCells = 8;  // per axis, without the apron
inline constexpr int kBrickSide = kBrickCells + 1;
inline constexpr int kBrickValues = kBrickSide * kBrickSide * kBrickSide;

struct CellCoord {
  int32_t x, y, z;  // axes that a tree does not have: 0
};

// These are taken over the 729 values. Where one of them is not finite, minimum and maximum are -inf and
// +inf.
struct BrickStats {
  float min, max;
  uint64_t hash;  // of their bits: equal values have equal hashes on every device
};
static_assert(sizeof(CellCoord) == 12 && sizeof(BrickStats) == 16);

}  // namespace coppice::render
