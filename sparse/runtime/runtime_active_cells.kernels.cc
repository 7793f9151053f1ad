// Copies all active cells of a node out of a tree, for the host (sparse/active_cells.h).
//
// Runs over any tree and any type of value: layouts come as data, values as bytes.
#include "sparse/runtime/containers.h"

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
  const uint32_t n = cells_of(l);
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
  each_active(last_level(c.node), c.elements[i.index].container, [&](uint32_t) { ++n; });
  counts[i.index] = n;
}
// starts[i]: how many there are in the containers before. coords: i32[n][3], missing leading axes 0.
COPPICE_KERNEL(read_active, Item i, CoppiceActiveCells c, const uint32_t* starts, int32_t* coords,
               unsigned char* values)
{
  const LevelLayout& l = last_level(c.node);
  const LoopElement& e = c.elements[i.index];
  uint64_t at = starts[i.index];
  each_active(l, e.container, [&](uint32_t k) {
    const Coord here = global_coord(e, local_coord(l, k));
    coords[3 * at] = here.x, coords[3 * at + 1] = here.y, coords[3 * at + 2] = here.z;
    const unsigned char* const value = value_in(c.tree, l, e.container, k, c.offset, c.stride);
    __builtin_memcpy(values + at * c.value_bytes, value, c.value_bytes);
    ++at;
  });
}
