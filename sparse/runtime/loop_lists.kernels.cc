// The sparse runtime's own kernels: the lists that loops run through, and neighbour tables.
//
// These run over any tree: they take its layouts as data instead of being specialized for them, so that one
// compilation serves all trees. Counts that the next kernel loops over are left in device memory.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

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

// How to pick the cells of a pointer node, or the chunks of a dynamic one.
struct CoppiceSelection {
  const AllocatorState* allocator;
  const NodeLayout* node;
  uint32_t level;       // of the node on the way
  uint32_t max_chunks;  // dynamic: of a list, else 1
  uint32_t batch;       // cells that one item looks at
  uint32_t key_bytes;   // 4 or 8
  uint32_t masked;      // there are bits above the node: a cell may be out of reach
  uint32_t reserved;
};
static bool is_selected(const TreeState* tree, const CoppiceSelection& s, uint32_t cell) {
  const CellHeader* header = header_of(s.allocator, cell);
  if (header->state != CellState::kLive) return false;
  if (s.masked == 0) return true;
  const NodeLayout& node = *s.node;
  const LevelLayout& level = node.level[s.level];
  Coord c{node.origin[0] + header->coord[0] * static_cast<int32_t>(level.span[0]),
          node.origin[1] + header->coord[1] * static_cast<int32_t>(level.span[1]),
          node.origin[2] + header->coord[2] * static_cast<int32_t>(level.span[2])};
  return find(node, tree, c).active;
}
// Item i is a batch of cells, from i * batch + 1 on (cell 0 is the ambient one). `count` is raised once per
// batch; the sort that follows puts the cells in order.
COPPICE_KERNEL(select_live, Item i, const TreeState* tree, CoppiceSelection s, void* keys, uint32_t* cells,
               uint64_t* count)
{
  const uint64_t first = static_cast<uint64_t>(i.index) * s.batch + 1;
  const uint64_t num_cells = handed_out(*s.allocator);
  const uint64_t end = first + s.batch < num_cells ? first + s.batch : num_cells;
  uint64_t n = 0;
  for (uint64_t cell = first; cell < end; ++cell) n += is_selected(tree, s, static_cast<uint32_t>(cell));
  if (n == 0) return;
  uint64_t at = coppice_fetch_add_u64(count, n);
  for (uint64_t cell = first; cell < end; ++cell) {
    if (!is_selected(tree, s, static_cast<uint32_t>(cell))) continue;
    const CellHeader* header = header_of(s.allocator, static_cast<uint32_t>(cell));
    const uint64_t key =
        coordinate_key(s.node, static_cast<int>(s.level), header->coord) * s.max_chunks + header->ordinal;
    if (s.key_bytes == 4)
      static_cast<uint32_t*>(keys)[at] = static_cast<uint32_t>(key);
    else
      static_cast<uint64_t*>(keys)[at] = key;
    cells[at++] = static_cast<uint32_t>(cell);
  }
}

// ---- the same where slots are few enough to look at all of them: containers are in
// order, and slots in containers are

// Slots of one container that one item looks at: item i is part i % parts of container i / parts.
struct CoppiceSlots {
  const LoopElement* containers;  // of the pointer node, in order
  uint64_t slots;                 // in a container
  uint32_t batch, parts;
  COPPICE_INLINE const uint32_t* begin(uint64_t i) const {
    return reinterpret_cast<const uint32_t*>(containers[i / parts].container) + first(i);
  }
  COPPICE_INLINE uint64_t first(uint64_t i) const { return i % parts * batch; }
  COPPICE_INLINE uint32_t count(uint64_t i) const {
    const uint64_t rest = slots - first(i);
    return rest < batch ? static_cast<uint32_t>(rest) : batch;
  }
};
COPPICE_KERNEL(count_slots, Item i, CoppiceSlots s, uint32_t* counts)
{
  const auto item = static_cast<uint64_t>(i.index);
  const uint32_t* slot = s.begin(item);
  uint32_t live = 0;
  for (uint32_t k = 0; k < s.count(item); ++k) live += slot[k] != 0;
  counts[item] = live;
}
COPPICE_KERNEL(write_slots, Item i, CoppiceSlots s, const uint32_t* starts, uint32_t* cells)
{
  const auto item = static_cast<uint64_t>(i.index);
  const uint32_t* slot = s.begin(item);
  uint32_t* out = cells + starts[item];
  for (uint32_t k = 0; k < s.count(item); ++k) {
    if (slot[k] != 0) *out++ = slot[k];
  }
}
// The elements of `node` right below the pointer node `above`: a cell's header need
// not be read to know where it is.
COPPICE_KERNEL(write_elements, Item i, const TreeState* tree, CoppiceSlots s, const uint32_t* starts,
               const NodeLayout* above, const NodeLayout* node, LoopElement* elements)
{
  const auto item = static_cast<uint64_t>(i.index);
  const uint32_t* slot = s.begin(item);
  const LevelLayout& level = node->level[node->depth - 2];
  const unsigned char* cells = tree->allocators[level.allocator].cells + level.child_offset;
  const LoopElement& container = s.containers[item / s.parts];
  LoopElement* out = elements + starts[item];
  for (uint32_t k = 0; k < s.count(item); ++k) {
    if (slot[k] == 0) continue;
    const auto index = static_cast<uint32_t>(s.first(item)) + k;
    const uint32_t at[kMaxDims] = {index / level.extent[2] / level.extent[1],
                                   index / level.extent[2] % level.extent[1], index % level.extent[2]};
    out->container = const_cast<unsigned char*>(cells) + slot[k] * level.cell_bytes;
    for (int d = 0; d < kMaxDims; ++d) {
      const uint32_t cell = static_cast<uint32_t>(container.origin[d] - above->origin[d]) + at[d];
      out->origin[d] = node->origin[d] + static_cast<int32_t>(cell * level.span[d]);
    }
    out->cell = slot[k];
    ++out;
  }
}

// ---- in a recording the host knows no counts: these stand between the kernels above and below, and what
// they leave is what those run over. A list that is up to date has none of anything.

struct CoppiceListCounts {
  uint64_t sources;  // items of the kernel that finds cells
  uint64_t cells;
  uint64_t items;  // of the list, before those under inactive bits are left out
};
struct CoppiceListPlan {
  const TreeState* tree;
  ListState* list;
  CoppiceListCounts* counts;
  const uint64_t* containers;       // by slots: of the pointer node,
  const AllocatorState* allocator;  // otherwise by its cells; neither: the root is the only cell
  uint32_t parts;                   // of a container
  uint32_t batch;                   // of cells
  uint64_t fan_out;
  uint64_t dynamic;
};
static uint64_t list_version(const CoppiceListPlan& p) {
  return p.tree->version + (p.dynamic != 0 ? p.tree->lists_version : 0);
}
COPPICE_KERNEL(plan_list, Item, CoppiceListPlan p)
{
  const bool stale = p.list->version != list_version(p);
  uint64_t sources = 1;
  if (p.containers != nullptr)
    sources = *p.containers * p.parts;
  else if (p.allocator != nullptr)
    sources = (handed_out(*p.allocator) - 1 + p.batch - 1) / p.batch;
  p.counts->sources = stale ? sources : 0;
  p.counts->cells = stale && p.containers == nullptr && p.allocator == nullptr;
}
// Where slots were counted, `starts` has their sums.
COPPICE_KERNEL(count_list, Item, CoppiceListPlan p, const uint32_t* starts)
{
  if (starts != nullptr) p.counts->cells = starts[p.counts->sources];
  p.counts->items = p.counts->cells * p.fan_out;
}
COPPICE_KERNEL(finish_list, Item, CoppiceListPlan p, const uint32_t* places)
{
  if (p.list->version == list_version(p)) return;
  p.list->count = places != nullptr ? places[p.counts->items] : p.counts->items;
  p.list->version = list_version(p);
}
COPPICE_KERNEL(plan_neighbours, Item, CoppiceListPlan p)
{ p.counts->items = p.list->neighbour_version != p.tree->version ? p.list->count : 0; }
COPPICE_KERNEL(finish_neighbours, Item, CoppiceListPlan p)
{ p.list->neighbour_version = p.tree->version; }

// ---- dynamic nodes

// Chunks as elements, each with what it holds of its list.
COPPICE_KERNEL(fill_chunks, Item i, const TreeState* tree, const NodeLayout* node, const uint32_t* cells,
               LoopElement* elements)
{
  const LevelLayout& level = node->level[node->depth - 1];
  const uint32_t cell = cells[i.index];
  auto* chunk = header_of(&tree->allocators[level.allocator], cell);
  const Coord c{node->origin[0] + chunk->coord[0], node->origin[1] + chunk->coord[1],
                node->origin[2] + chunk->coord[2]};
  const int64_t length = list_length(level, tree, list_at(find(*node, tree, c)));
  const int64_t rest = length - static_cast<int64_t>(chunk->ordinal) * level.chunk_cells;
  chunk->count = static_cast<uint32_t>(rest < 0 ? 0 : rest < level.chunk_cells ? rest : level.chunk_cells);
  elements[i.index] = {reinterpret_cast<unsigned char*>(chunk), {c.x, c.y, c.z}, cell};
}

// From a cell (or the root) to one container below it, across dense and bitmasked
// levels. `sub` counts these in order.
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

// Where item i of an expanded list is: container `i % fan_out` below live cell `i / fan_out`;
// without cells, below the root.
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
// `places` has each item's place among those flagged, and one more; null keeps all.
COPPICE_KERNEL(fill_elements, Item i, const TreeState* tree, const NodeLayout* node, int pointer_level,
               const uint32_t* cells, uint64_t fan_out, const uint32_t* places, LoopElement* elements)
{
  const auto source = static_cast<uint64_t>(i.index);
  if (places != nullptr && places[source] == places[source + 1]) return;
  const Descent d = locate(tree, node, pointer_level, cells, fan_out, source);
  elements[places != nullptr ? places[source] : source] = {
      d.container,
      {d.origin[0], d.origin[1], d.origin[2]},
      cells == nullptr ? kAmbientCell : cells[source / fan_out]};
}

// The cells around each element, for nodes right below a pointer node; an inactive or
// outside one is the ambient cell.
COPPICE_KERNEL(fill_neighbours, Item i, const TreeState* tree, const NodeLayout* parent,
               const LoopElement* elements, const NodeLayout* node, uint32_t* neighbours)
{
  const LoopElement& e = elements[i.index];
  const LevelLayout& p = node->level[node->depth - 2];
  const int reach_x = node->dims > 2, reach_y = node->dims > 1;
  uint32_t* out = neighbours + static_cast<uint64_t>(i.index) * ((reach_x * 2 + 1) * (reach_y * 2 + 1) * 3);
  int32_t at[kMaxDims];
  for (int k = 0; k < kMaxDims; ++k)
    at[k] = (e.origin[k] - node->origin[k]) / static_cast<int32_t>(p.span[k]) + parent->origin[k];
  for (int x = -reach_x; x <= reach_x; ++x) {
    for (int y = -reach_y; y <= reach_y; ++y) {
      for (int z = -1; z <= 1; ++z) {
        const CellRef place = find(*parent, tree, {plus(at[0], x), plus(at[1], y), plus(at[2], z)});
        *out++ = place.active ? slot_cell(place.container, place.index) : kAmbientCell;
      }
    }
  }
}
