// A container of a tree's node, as kernels list it for drawing.
//
// Device-clean.
#pragma once
#include <cstdint>

namespace coppice::render {

struct TreeBox {
  int32_t low[3];  // its first cell, in cells of its node by axis of the tree; axes that the tree lacks: 0
  uint32_t live;   // active cells in it
};
static_assert(sizeof(TreeBox) == 16);

}  // namespace coppice::render
