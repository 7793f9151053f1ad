// Copies all active cells of a node out of a tree, for the host (sparse/active_cells.h).
//
// Runs over any tree and any type of value: layouts come as data, values as bytes.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

// A node's containers, and where a field's values are in them.
struct CoppiceActiveCells {
  const TreeState* tree;
  const NodeLayout* node;
  const LoopElement* elements;
  uint64_t offset;  // of the field's value of cell 0 in its container, or in a pointer node's cell
  uint32_t stride;
  uint32_t value_bytes;
};

// Calls visit(index) for each active cell of a container.
template <class Visit>
static void each_active(const LevelLayout& l, const unsigned char* container, Visit visit) {
  const uint32_t n = l.extent[0] * l.extent[1] * l.extent[2];
  const auto* const mask = reinterpret_cast<const uint64_t*>(container);
  for (uint32_t k = 0; k < n; ++k) {
    if (l.kind == NodeKind::kBitmasked && (mask[k / 64] >> (k % 64) & 1) == 0) continue;
    if (l.kind == NodeKind::kPointer && slot_cell(container, k) == kAmbientCell) continue;
    visit(k);
  }
}

// Item i is a container of the list.
COPPICE_KERNEL(count_active_of, Item i, CoppiceActiveCells c, uint32_t* counts)
{
  uint32_t n = 0;
  each_active(c.node->level[c.node->depth - 1], c.elements[i.index].container, [&](uint32_t) { ++n; });
  counts[i.index] = n;
}
// starts[i]: how many there are in the containers before. coords: i32[n][3], missing leading axes 0.
COPPICE_KERNEL(read_active, Item i, CoppiceActiveCells c, const uint32_t* starts, int32_t* coords,
               unsigned char* values)
{
  const LevelLayout& l = c.node->level[c.node->depth - 1];
  const LoopElement& e = c.elements[i.index];
  uint64_t at = starts[i.index];
  each_active(l, e.container, [&](uint32_t k) {
    const uint32_t row = k / l.extent[2];
    const int32_t local[] = {static_cast<int32_t>(row / l.extent[1]), static_cast<int32_t>(row % l.extent[1]),
                             static_cast<int32_t>(k % l.extent[2])};
    for (int d = 0; d < kMaxDims; ++d) coords[3 * at + d] = plus(e.origin[d], local[d]);
    const unsigned char* value = e.container + c.offset + k * static_cast<uint64_t>(c.stride);
    if (l.kind == NodeKind::kPointer)
      value = c.tree->allocators[l.allocator].cells + slot_cell(e.container, k) * l.cell_bytes + c.offset;
    __builtin_memcpy(values + at * c.value_bytes, value, c.value_bytes);
    ++at;
  });
}
