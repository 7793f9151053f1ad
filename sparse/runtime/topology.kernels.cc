// The sparse runtime's own kernels: activation by coordinate, loop lists, neighbour tables and collection.
//
// These run over any tree: they take its layouts as data instead of being specialized for them, so that one
// compilation serves all trees. Counts that the next kernel loops over are left in device memory.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

COPPICE_KERNEL(activate_coords, Topology node, Item i, const int32_t* coords)
{
  const int32_t* c = coords + 3 * i.index;
  node.activate(i, {c[0], c[1], c[2]});
}
COPPICE_KERNEL(deactivate_coords, Topology node, Item i, const int32_t* coords)
{
  const int32_t* c = coords + 3 * i.index;
  node.deactivate(i, {c[0], c[1], c[2]});
}
COPPICE_KERNEL(test_coords, Topology node, Item i, const int32_t* coords, uint32_t* active)
{
  const int32_t* c = coords + 3 * i.index;
  active[i.index] = node.is_active(i, {c[0], c[1], c[2]});
}

static CellHeader* header_of(const AllocatorState* a, uint32_t cell) {
  return reinterpret_cast<CellHeader*>(a->cells + cell * a->cell_bytes);
}

// ---- loop lists: select the live cells, sort by coordinate (host primitive), write the elements

// A key that orders cells by coordinate, coarse blocks first: the index at every level of the way down.
static uint64_t coordinate_key(const NodeLayout* node, int level, const int32_t* coord) {
  uint64_t key = 0;
  const LevelLayout& last = node->level[level];
  for (int l = 0; l <= level; ++l) {
    const LevelLayout& at = node->level[l];
    uint32_t index = 0;
    for (int d = 0; d < kMaxDims; ++d) {
      const uint32_t cells_per = at.span[d] / last.span[d];
      index = index * at.extent[d] + static_cast<uint32_t>(coord[d]) / cells_per % at.extent[d];
    }
    key = key * (static_cast<uint64_t>(at.extent[0]) * at.extent[1] * at.extent[2]) + index;
  }
  return key;
}

// Item i is allocator cell i + 1 (cell 0 is the ambient one).
COPPICE_KERNEL(select_live, Item i, const AllocatorState* a, const NodeLayout* node, int level,
               uint64_t* keys, uint32_t* cells, uint64_t* count)
{
  const uint32_t cell = static_cast<uint32_t>(i.index) + 1;
  const CellHeader* header = header_of(a, cell);
  if (header->state != CellState::kLive) return;
  const uint64_t at = coppice_fetch_add_u64(count, 1);
  keys[at] = coordinate_key(node, level, header->coord);
  cells[at] = cell;
}

// From a cell (or the root) to one container below it, across dense and bitmasked levels. `sub` counts these in order.
struct Descent {
  unsigned char* container;
  int32_t origin[kMaxDims];
  bool active;
};
static Descent descend(const NodeLayout* node, int level, unsigned char* container, const uint32_t* first,
                       uint64_t sub) {
  Descent d{container, {0, 0, 0}, true};
  for (int k = 0; k < kMaxDims; ++k) d.origin[k] = node->origin[k] + static_cast<int32_t>(first[k]);
  uint64_t below = 1;
  for (uint32_t l = level; l + 1 < node->depth; ++l) {
    below *=
        static_cast<uint64_t>(node->level[l].extent[0]) * node->level[l].extent[1] * node->level[l].extent[2];
  }
  for (uint32_t l = level; l + 1 < node->depth; ++l) {
    const LevelLayout& at = node->level[l];
    below /= static_cast<uint64_t>(at.extent[0]) * at.extent[1] * at.extent[2];
    const uint32_t index = static_cast<uint32_t>(sub / below);
    sub %= below;
    if (at.kind == NodeKind::kBitmasked && !mask_bit(d.container, index)) d.active = false;
    d.origin[2] += static_cast<int32_t>(index % at.extent[2] * at.span[2]);
    d.origin[1] += static_cast<int32_t>(index / at.extent[2] % at.extent[1] * at.span[1]);
    d.origin[0] += static_cast<int32_t>(index / at.extent[2] / at.extent[1] * at.span[0]);
    d.container += at.cell_offset + index * at.cell_bytes + at.child_offset;
  }
  return d;
}

// Where item i of an expanded list is: container `i % fan_out` below live cell `i / fan_out`; without cells, below the root.
static Descent locate(const TreeState* tree, const NodeLayout* node, int pointer_level, const uint32_t* cells,
                      uint64_t fan_out, uint64_t i) {
  uint32_t first[kMaxDims] = {0, 0, 0};
  if (cells == nullptr) return descend(node, 0, tree->root + node->root_offset, first, i);
  const LevelLayout& p = node->level[pointer_level];
  const AllocatorState* a = &tree->allocators[p.allocator];
  const CellHeader* header = header_of(a, cells[i / fan_out]);
  for (int k = 0; k < kMaxDims; ++k) first[k] = static_cast<uint32_t>(header->coord[k]) * p.span[k];
  unsigned char* container = a->cells + cells[i / fan_out] * a->cell_bytes + p.child_offset;
  return descend(node, pointer_level + 1, container, first, i % fan_out);
}

COPPICE_KERNEL(flag_elements, Item i, const TreeState* tree, const NodeLayout* node, int pointer_level,
               const uint32_t* cells, uint64_t fan_out, uint32_t* flags)
{ flags[i.index] = locate(tree, node, pointer_level, cells, fan_out, static_cast<uint64_t>(i.index)).active; }
// `selected` lists the items to keep; null keeps all.
COPPICE_KERNEL(fill_elements, Item i, const TreeState* tree, const NodeLayout* node, int pointer_level,
               const uint32_t* cells, uint64_t fan_out, const uint32_t* selected, Element* elements)
{
  const uint64_t source = selected == nullptr ? static_cast<uint64_t>(i.index) : selected[i.index];
  const Descent d = locate(tree, node, pointer_level, cells, fan_out, source);
  elements[i.index] = {d.container,
                       {d.origin[0], d.origin[1], d.origin[2]},
                       cells == nullptr ? kAmbientCell : cells[source / fan_out]};
}

// The cells around each element, for nodes right below a pointer node; an inactive or outside one is the ambient cell.
COPPICE_KERNEL(fill_neighbours, Item i, const TreeState* tree, const NodeLayout* parent,
               const Element* elements, const NodeLayout* node, uint32_t* neighbours)
{
  const Element& e = elements[i.index];
  const LevelLayout& p = node->level[node->depth - 2];
  const int reach_x = node->dims > 2, reach_y = node->dims > 1;
  uint32_t* out = neighbours + static_cast<uint64_t>(i.index) * ((reach_x * 2 + 1) * (reach_y * 2 + 1) * 3);
  int32_t at[kMaxDims];
  for (int k = 0; k < kMaxDims; ++k)
    at[k] = (e.origin[k] - node->origin[k]) / static_cast<int32_t>(p.span[k]) + parent->origin[k];
  for (int x = -reach_x; x <= reach_x; ++x) {
    for (int y = -reach_y; y <= reach_y; ++y) {
      for (int z = -1; z <= 1; ++z) {
        const Place place = find(*parent, tree, {at[0] + x, at[1] + y, at[2] + z});
        *out++ = place.active ? slot_cell(place.container, place.index) : kAmbientCell;
      }
    }
  }
}

// ---- deactivation of everything below a node

COPPICE_KERNEL(recycle_all_cells, Item i, TreeState* tree, uint32_t allocator)
{
  AllocatorState* a = &tree->allocators[allocator];
  const uint32_t cell = static_cast<uint32_t>(i.index) + 1;
  const CellHeader* header = header_of(a, cell);
  if (header->state != CellState::kLive || coppice_compare_exchange_u32(header->slot, cell, 0) != cell)
    return;
  a->recycled_list[coppice_fetch_add_u32(&a->recycled_size, 1)] = cell;
}
COPPICE_KERNEL(zero_containers, Item i, const Element* elements, uint64_t container_bytes)
{ zero_bytes(elements[i.index].container, container_bytes); }

// ---- collection (three stages per allocator, root to leaves; stage 0 is preceded by marking and by the children)

// counts: [0] recycled, [1] free entries to move, [2] cells ever handed out
COPPICE_KERNEL(collect_begin, Item, AllocatorState* a, uint64_t* counts)
{
  if (a->free_used > a->free_size) a->free_used = a->free_size;
  if (a->num_cells > a->capacity) a->num_cells = a->capacity;
  a->recycle_count = a->recycled_size;
  a->free_kept = a->free_size - a->free_used;
  counts[0] = a->recycle_count;
  // Kept entries sit at the end of the list. Where they overlap their new place, only as many as were used move.
  counts[1] = a->free_kept < a->free_used ? a->free_kept : a->free_used;
  counts[2] = a->num_cells - 1;
}
COPPICE_KERNEL(collect_mark, Item i, const AllocatorState* a)
{ header_of(a, a->recycled_list[i.index])->state = CellState::kRecycled; }
// A recycled cell's children go with it. Item i is the child allocator's cell i + 1.
COPPICE_KERNEL(collect_children, Item i, TreeState* tree, uint32_t parent, uint32_t child)
{
  AllocatorState* a = &tree->allocators[child];
  const AllocatorState* p = &tree->allocators[parent];
  const uint32_t cell = static_cast<uint32_t>(i.index) + 1;
  const CellHeader* header = header_of(a, cell);
  if (header->state != CellState::kLive) return;
  const uint64_t parent_cell =
      static_cast<uint64_t>(reinterpret_cast<unsigned char*>(header->slot) - p->cells) / p->cell_bytes;
  if (header_of(p, static_cast<uint32_t>(parent_cell))->state != CellState::kRecycled) return;
  // Another number in the slot: this cell was deactivated, and its successor answers for itself.
  if (coppice_compare_exchange_u32(header->slot, cell, 0) != cell) return;
  a->recycled_list[coppice_fetch_add_u32(&a->recycled_size, 1)] = cell;
}
// Stage 0: moves the unused tail of the free list to its head.
COPPICE_KERNEL(collect_move_free, Item i, AllocatorState* a)
{ a->free_list[i.index] = a->free_list[a->free_size - 1 - static_cast<uint32_t>(i.index)]; }
// Stage 1: serial bookkeeping.
COPPICE_KERNEL(collect_bookkeep, Item, AllocatorState* a)
{
  a->free_size = a->free_kept + a->recycle_count;
  a->free_used = 0;
  a->recycled_size = 0;
}
// Stage 2: recycled cells become free ones, zeroed.
COPPICE_KERNEL(collect_refill, Item i, AllocatorState* a)
{
  const uint32_t cell = a->recycled_list[i.index];
  a->free_list[a->free_kept + static_cast<uint32_t>(i.index)] = cell;
  zero_bytes(a->cells + cell * a->cell_bytes, a->cell_bytes);
}
