// The containers of a node, for kernels that run over any tree: layouts come as data.
//
// Device-clean. For the runtime's own kernels.
#pragma once
#include "coppice/kernel.h"

namespace coppice::device {

COPPICE_INLINE const LevelLayout& last_level(const NodeLayout* node) { return node->level[node->depth - 1]; }

// Returns how many cells a container has that is no list.
COPPICE_INLINE uint32_t cells_of(const LevelLayout& l) { return l.extent[0] * l.extent[1] * l.extent[2]; }

// Returns the coordinate of cell `index` of a container, in the container.
COPPICE_INLINE Coord local_coord(const LevelLayout& l, uint32_t index) {
  return {static_cast<int32_t>(index / l.extent[2] / l.extent[1]),
          static_cast<int32_t>(index / l.extent[2] % l.extent[1]), static_cast<int32_t>(index % l.extent[2])};
}
COPPICE_INLINE Coord global_coord(const LoopElement& e, Coord c) {
  return plus({e.origin[0], e.origin[1], e.origin[2]}, c);
}

// Returns where cell `index` of a container has a field's value; `offset` is that of cell 0's in the
// container, or in a pointer node's cell. What is not active there leads to zeros.
COPPICE_INLINE const unsigned char* value_in(const TreeState* tree, const LevelLayout& l,
                                             const unsigned char* container, uint32_t index, uint64_t offset,
                                             uint32_t stride) {
  if (l.kind == NodeKind::kPointer)
    return tree->allocators[l.allocator].cells + slot_cell(container, index) * l.cell_bytes + offset;
  return container + offset + index * static_cast<uint64_t>(stride);
}

}  // namespace coppice::device
