// Bulk activation: many coordinates at once, without a lock. The host sorts them
// (sparse/bulk_activation.cc); here a level of the tree at a time, every cell that is wanted and not there
// is found once, and gets its place in one allocation.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

// Coordinates of cells of a node, from its origin.
COPPICE_INLINE Coord relative(const NodeLayout& node, const int32_t* c) {
  return {c[0] - node.origin[0], c[1] - node.origin[1], c[2] - node.origin[2]};
}

// A key that orders coordinates as they lie in the tree: the index at every level down to
// `level`, the highest first. Coordinates outside the domain are told of by the lowest item that
// has one, and sorted to the end.
COPPICE_KERNEL(bulk_keys, Item i, const NodeLayout* node, uint32_t level, const int32_t* coords,
               uint64_t* keys, uint32_t* order, uint64_t* outside)
{
  const int32_t* c = coords + 3 * i.index;
  order[i.index] = static_cast<uint32_t>(i.index);
  if (!in_domain(*node, {c[0], c[1], c[2]})) {
    keys[i.index] = ~uint64_t{0};
    coppice_fetch_add_u64(outside, 1);
    return;
  }
  const Coord r = relative(*node, c);
  uint64_t key = 0;
  for (uint32_t l = 0; l <= level; ++l) {
    const LevelLayout& at = node->level[l];
    key = key * num_cells_of(at) +
          cell_index(at, static_cast<uint32_t>(r.x), static_cast<uint32_t>(r.y), static_cast<uint32_t>(r.z));
  }
  keys[i.index] = key;
}

// A level's kernels work on this. Keys down to a level are those of the last one divided by `per_cell`.
struct CoppiceBulkLevel {
  TreeState* tree;
  const NodeLayout* node;  // of the coordinates
  const NodeLayout* at;    // of the level's own node, the `level`-th on the way
  uint32_t level;
  uint32_t reserved;
  uint64_t per_cell;
  const uint64_t* keys;   // sorted
  const uint32_t* order;  // which coordinate a key is of
  const int32_t* coords;
};
static Coord cell_of(const CoppiceBulkLevel& b, uint64_t i) {
  const Coord r = relative(*b.node, b.coords + 3 * uint64_t{b.order[i]});
  return cell_coord_at(b.node->level[b.level], static_cast<uint32_t>(r.x), static_cast<uint32_t>(r.y),
                       static_cast<uint32_t>(r.z));
}
static CellRef place_of(const CoppiceBulkLevel& b, Coord cell) {
  const NodeLayout& at = *b.at;
  return find(at, b.tree, {cell.x + at.origin[0], cell.y + at.origin[1], cell.z + at.origin[2]});
}
static bool is_first(const CoppiceBulkLevel& b, uint64_t i) {
  return i == 0 || b.keys[i] / b.per_cell != b.keys[i - 1] / b.per_cell;
}

// 1 for the first key of each slot that is empty.
COPPICE_KERNEL(bulk_flag_empty, Item i, CoppiceBulkLevel b, uint32_t* flags)
{
  const auto k = static_cast<uint64_t>(i.index);
  uint32_t wanted = 0;
  if (is_first(b, k)) {
    const CellRef p = place_of(b, cell_of(b, k));
    wanted = slot_cell(p.container, p.index) == kAmbientCell;
  }
  flags[k] = wanted;
}
// Item i is the i-th empty slot: the first ones get what is left of the free list.
COPPICE_KERNEL(bulk_fill, Item i, CoppiceBulkLevel b, const uint32_t* selected)
{
  const LevelLayout& level = b.node->level[b.level];
  AllocatorState* a = &b.tree->allocators[level.allocator];
  const auto n = static_cast<uint32_t>(i.index), left = a->free_size - a->free_used;
  const uint32_t cell = n < left ? a->free_list[a->free_used + n] : a->num_cells + (n - left);
  const Coord coord = cell_of(b, selected[n]);
  const CellRef p = place_of(b, coord);
  uint32_t* slot = reinterpret_cast<uint32_t*>(p.container) + p.index;
  write_header(a, cell, slot, {coord, 0});
  coppice_store_release_u32(slot, cell);
}
COPPICE_KERNEL(bulk_bits, Item i, CoppiceBulkLevel b)
{
  const auto k = static_cast<uint64_t>(i.index);
  if (!is_first(b, k)) return;
  const CellRef p = place_of(b, cell_of(b, k));
  activate_bit(b.tree, b.node->level[b.level], p.container, p.index);
}
