// Copies a box of a field's values out of a tree, for the host (sparse/read_back.h).
//
// Runs over any tree and any type of value: layouts come as data, values as bytes.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

struct CoppiceFieldBox {
  int32_t begin[3];  // lowest coordinate; missing leading dimensions are 0
  uint32_t size[3];  // and 1
  int64_t first;     // item 0's cell of the box
  uint64_t offset;   // of the field's value of cell 0 in its container, or in a pointer node's cell
  uint32_t stride;
  uint32_t value_bytes;
  uint32_t is_temporary;  // 1: inactive cells hold anything
};

// Item i is the box's cell first + i, the last axis fastest.
COPPICE_KERNEL(read_box, Item i, const TreeState* tree, const NodeLayout* node, CoppiceFieldBox box,
               unsigned char* out)
{
  const int64_t cell_of_box = box.first + i.index, row = cell_of_box / box.size[2];
  const Coord c{plus(box.begin[0], static_cast<int32_t>(row / box.size[1])),
                plus(box.begin[1], static_cast<int32_t>(row % box.size[1])),
                plus(box.begin[2], static_cast<int32_t>(cell_of_box % box.size[2]))};
  const CellRef p = find(*node, tree, c);
  const LevelLayout& last = node->level[node->depth - 1];
  const unsigned char* value = p.container + box.offset + p.index * static_cast<uint64_t>(box.stride);
  if (last.kind == NodeKind::kPointer) {
    const uint64_t cell = slot_cell(p.container, p.index);
    value = tree->allocators[last.allocator].cells + cell * last.cell_bytes + box.offset;
  }
  unsigned char* const to = out + i.index * box.value_bytes;
  if (box.is_temporary != 0 && !is_active(*node, p))
    __builtin_memset(to, 0, box.value_bytes);
  else
    __builtin_memcpy(to, value, box.value_bytes);
}
