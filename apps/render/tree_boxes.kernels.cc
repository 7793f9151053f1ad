// Kernels that list the containers of a tree's node, and count the active cells of each.
//
// Each has three forms, for trees of 1, 2 and 3 dimensions.
#include "apps/render/tree_box.h"
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::render;

// Cells of a container per axis of the tree; axes that it lacks: 1.
struct ContainerExtent {
  int32_t cells[3];
};

namespace {

template <int D>
COPPICE_INLINE TreeBox box_of(const Block<D>& block, uint32_t live) {
  return {{block.coord(0), D > 1 ? block.coord(D > 1 ? 1 : 0) : 0, D > 2 ? block.coord(D > 2 ? 2 : 0) : 0},
          live};
}

template <int D>
COPPICE_INLINE bool is_active(const Topology& node, const Block<D>& block, int i, int j, int k) {
  if constexpr (D == 1) return node.is_active(block, {block.coord(0) + i});
  if constexpr (D == 2) return node.is_active(block, {block.coord(0) + i, block.coord(1) + j});
  if constexpr (D == 3)
    return node.is_active(block, {block.coord(0) + i, block.coord(1) + j, block.coord(2) + k});
}

template <int D>
COPPICE_INLINE void count_cells(const Topology& node, const Block<D>& block, const ContainerExtent& extent,
                                TreeBox* boxes) {
  uint32_t live = 0;
  for (int i = 0; i < extent.cells[0]; ++i)
    for (int j = 0; j < extent.cells[1]; ++j)
      for (int k = 0; k < extent.cells[2]; ++k) live += is_active(node, block, i, j, k) ? 1 : 0;
  boxes[block.number] = box_of(block, live);
}

}  // namespace

COPPICE_KERNEL(list_boxes_1, Topology, Block1 block, TreeBox* boxes)
{ boxes[block.number] = box_of(block, 0); }
COPPICE_KERNEL(list_boxes_2, Topology, Block2 block, TreeBox* boxes)
{ boxes[block.number] = box_of(block, 0); }
COPPICE_KERNEL(list_boxes_3, Topology, Block3 block, TreeBox* boxes)
{ boxes[block.number] = box_of(block, 0); }

COPPICE_KERNEL(count_boxes_1, Topology node, Block1 block, ContainerExtent extent, TreeBox* boxes)
{ count_cells(node, block, extent, boxes); }
COPPICE_KERNEL(count_boxes_2, Topology node, Block2 block, ContainerExtent extent, TreeBox* boxes)
{ count_cells(node, block, extent, boxes); }
COPPICE_KERNEL(count_boxes_3, Topology node, Block3 block, ContainerExtent extent, TreeBox* boxes)
{ count_cells(node, block, extent, boxes); }
