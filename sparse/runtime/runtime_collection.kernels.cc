// Collection: what was deactivated becomes free memory again, allocator by allocator from the root to the
// leaves.
//
// Every stage is a kernel of its own. Before the three stages (0: what is left of the free list moves to its
// head; 1: serial bookkeeping; 2: recycled cells are zeroed and become free ones) an allocator's recycled
// cells recycle what lies below them, in allocators whose turn comes later.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

static WorkShare lanes_of(const Team& team) { return {team.lane(), team.lanes()}; }
static unsigned char* cell_at(const AllocatorState* a, uint64_t cell) {
  return a->cells + cell * a->cell_bytes;
}

// The word of the batch that lies highest among those that workers hold of an allocator's
// free list, or of its fresh cells.
static uint64_t* last_batch(const TreeState* tree, uint32_t allocator, bool is_recycled) {
  uint64_t* last = nullptr;
  for (uint64_t w = 0; w < tree->num_workers; ++w) {
    uint64_t* const word = &tree->workers[w].batch[allocator];
    const CellBatch b = unpack_batch(*word);
    if (b.left == 0 || b.is_recycled != is_recycled) continue;
    if (last == nullptr || unpack_batch(*last).at < b.at) last = word;
  }
  return last;
}
// Cells that workers hold become free again. From the highest batch down: of the free list no entry is
// overwritten before it has moved, and of the fresh cells those behind the last one in use count as never
// handed out; the others join the free list.
COPPICE_KERNEL(give_back_cells, Item, TreeState* tree, uint32_t allocators)
{
  for (uint32_t n = 0; n < allocators; ++n) {
    AllocatorState* const a = &tree->allocators[n];
    while (uint64_t* const word = last_batch(tree, n, true)) {
      const CellBatch b = unpack_batch(*word);
      for (uint32_t i = b.left; i-- > 0;) a->free_list[--a->free_used] = a->free_list[b.at + i];
      *word = 0;
    }
    while (uint64_t* const word = last_batch(tree, n, false)) {
      const CellBatch b = unpack_batch(*word);
      *word = 0;
      if (b.at + b.left == a->num_cells) {
        a->num_cells = b.at;
        continue;
      }
      for (uint32_t i = b.left; i-- > 0;)
        a->free_list[a->free_used > 0 ? --a->free_used : a->free_size++] = b.at + i;
    }
    for (uint64_t w = 0; w < tree->num_workers; ++w) tree->workers[w].batch[n] = 0;
  }
  tree->holds_cells = 0;
}

COPPICE_KERNEL(count_batches, Item, const AllocatorState* a, uint32_t batch, uint64_t* batches)
{ *batches = (handed_out(*a) - 1 + batch - 1) / batch; }
// Item i is `batch` of the allocator's cells, from i * batch + 1 on, at most 64. Nothing else runs meanwhile,
// so slots are emptied by plain stores; the list's size is raised once per item, and where an item is one
// cell, once per warp.
COPPICE_KERNEL(recycle_all_cells, Item i, TreeState* tree, uint32_t allocator, uint32_t batch)
{
  AllocatorState* a = &tree->allocators[allocator];
  const uint64_t num_cells = handed_out(*a);
  const uint64_t first = static_cast<uint64_t>(i.index) * batch + 1;
  const uint64_t end = first + batch < num_cells ? first + batch : num_cells;
  uint64_t recycled = 0;
  for (uint64_t cell = first; cell < end; ++cell) {
    const auto* header = reinterpret_cast<const CellHeader*>(cell_at(a, cell));
    // Another number in the slot: this cell was deactivated before, and waits for its collection.
    if (header->state != CellState::kLive || *header->slot != cell) continue;
    *header->slot = 0;
    recycled |= uint64_t{1} << (cell - first);
  }
  if (recycled == 0) return;
  if (batch == 1) {
    a->recycled_list[warp_fetch_increment(&a->recycled_size)] = static_cast<uint32_t>(first);
    return;
  }
  uint32_t at =
      coppice_fetch_add_u32(&a->recycled_size, static_cast<uint32_t>(__builtin_popcountll(recycled)));
  for (; recycled != 0; recycled &= recycled - 1)
    a->recycled_list[at++] = static_cast<uint32_t>(first) + static_cast<uint32_t>(__builtin_ctzll(recycled));
}
COPPICE_KERNEL(zero_containers, Team team, const LoopElement* elements, uint64_t container_bytes)
{ zero_bytes_by(lanes_of(team), elements[team.index].container, container_bytes); }

// The chunks behind a recycled one. Item i is recycled cell i, of those that were there at first.
COPPICE_KERNEL(collect_chain, Item i, AllocatorState* a)
{
  unsigned char* chunk = cell_at(a, a->recycled_list[i.index]);
  for (;;) {
    auto* next = reinterpret_cast<uint32_t*>(chunk + kNextChunk);
    const uint32_t cell = *next;
    if (cell == 0 || !recycle_slot(a, next)) return;
    chunk = cell_at(a, cell);
  }
}
// A recycled cell's children go with it. A thread block per cell shares the slots.
COPPICE_KERNEL(collect_below, Team team, TreeState* tree, uint32_t allocator, const NodeLayout* node)
{
  const AllocatorState* a = &tree->allocators[allocator];
  unsigned char* cell = cell_at(a, a->recycled_list[team.index]);
  clear_below(tree, node->below, node->depth, cell, Clearing::kSlots, lanes_of(team));
}

COPPICE_KERNEL(count_recycled, Item, const AllocatorState* a, uint64_t* counts)
{ counts[0] = a->recycled_size; }
// counts: [0] items of collect_refill, [1] free entries to move
COPPICE_KERNEL(collect_begin, Item, AllocatorState* a, uint32_t refill_batch, uint64_t* counts)
{
  if (a->free_used > a->free_size) a->free_used = a->free_size;
  if (a->num_cells > a->capacity) a->num_cells = a->capacity;
  a->recycle_count = a->recycled_size;
  a->free_kept = a->free_size - a->free_used;
  counts[0] = (a->recycle_count + refill_batch - 1) / refill_batch;
  // Kept entries sit at the end of the list. Where they overlap their new place, only as many as were used
  // move.
  counts[1] = a->free_kept < a->free_used ? a->free_kept : a->free_used;
}
// Stage 0: moves the unused tail of the free list to its head.
COPPICE_KERNEL(collect_move_free, Item i, AllocatorState* a)
{ a->free_list[i.index] = a->free_list[a->free_size - 1 - static_cast<uint32_t>(i.index)]; }
// Stage 1: serial bookkeeping.
COPPICE_KERNEL(collect_bookkeep, Item, AllocatorState* a)
{
  a->free_size = a->free_kept + a->recycle_count;
  a->collected += a->recycle_count;
  a->collections += a->recycle_count != 0;
  a->free_used = 0;
  a->recycled_size = 0;
}
// Stage 2: recycled cells become free ones, zeroed but for temporaries at their end. A thread block has
// `batch` cells, so that a small cell does not cost as much as its thread block; its threads share all
// their lines.
COPPICE_KERNEL(collect_refill, Team team, AllocatorState* a, uint32_t batch)
{
  const WorkShare by = lanes_of(team);
  const uint32_t first = static_cast<uint32_t>(team.index) * batch, left = a->recycle_count - first;
  const uint32_t cells = left < batch ? left : batch;
  const uint32_t* const recycled = a->recycled_list + first;
  uint32_t* const free = a->free_list + a->free_kept + first;
  for (uint32_t i = by.lane; i < cells; i += by.count) free[i] = recycled[i];
  if (by.count == 1 || batch == 1) {
    for (uint32_t i = 0; i < cells; ++i) zero_bytes_by(by, cell_at(a, recycled[i]), a->zeroed_bytes);
    return;
  }
  struct alignas(16) Line {
    uint64_t words[2];
  };
  // A cell has whole lines of 64 bytes (node_sizes.cc); temporaries may be anything.
  const auto lines = static_cast<uint32_t>((a->zeroed_bytes + sizeof(Line) - 1) / sizeof(Line));
  for (uint32_t i = by.lane; i < cells * lines; i += by.count)
    reinterpret_cast<Line*>(cell_at(a, recycled[i / lines]))[i % lines] = Line{};
}

// The masks of all containers of a bitmasked node, whether they can be reached or not, word by
// word: `cell_words` of them below each cell of the nearest pointer node above, its level
// `pointer_level`, or, with -1, below the root.
struct CoppiceDirtyNode {
  TreeState* tree;
  const NodeLayout* node;
  int64_t pointer_level;
  uint64_t cell_words, batch;
};
static uint64_t num_words(const CoppiceDirtyNode& d) {
  if (d.pointer_level < 0) return d.cell_words;
  return d.cell_words * (handed_out(d.tree->allocators[d.node->level[d.pointer_level].allocator]) - 1);
}
COPPICE_KERNEL(count_dirty, Item, CoppiceDirtyNode d, uint64_t* items)
{ *items = d.tree->dirty != 0 ? (num_words(d) + d.batch - 1) / d.batch : 0; }

static void clean_word(TreeState* tree, const NodeLayout& node, unsigned char* container, uint64_t word) {
  const MaskWord m = mask_word(node.level[node.depth - 1], container, word);
  if (*m.dirty == 0) return;
  for (uint64_t bits = *m.dirty & ~*m.active; bits != 0; bits &= bits - 1) {
    const auto index = static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits));
    zero_cell(tree, node, container, index, Clearing::kAll);
  }
  *m.dirty = 0;
}
// Zeroes cells that were deactivated and not activated again. Nothing else runs meanwhile; what lies below
// them comes later. An item is `batch` words.
COPPICE_KERNEL(clean_dirty, Item i, CoppiceDirtyNode d)
{
  const NodeLayout& node = *d.node;
  const uint64_t words = mask_words(num_cells_of(node.level[node.depth - 1]));
  const uint64_t begin = static_cast<uint64_t>(i.index) * d.batch, all = num_words(d);
  uint64_t left = all - begin < d.batch ? all - begin : d.batch;
  uint64_t cell = begin / d.cell_words + 1, sub = begin % d.cell_words / words, word = begin % words;
  const uint64_t containers = d.cell_words / words;
  const auto first_level = static_cast<uint32_t>(d.pointer_level + 1);
  while (left > 0) {
    unsigned char* first = d.tree->root + node.root_offset;
    if (d.pointer_level >= 0) {
      const LevelLayout& pointer = node.level[d.pointer_level];
      first = cell_at(&d.tree->allocators[pointer.allocator], cell) + pointer.child_offset;
    }
    for (; sub < containers && left > 0; ++sub, word = 0) {
      unsigned char* const container = container_below(node, first_level, first, sub);
      for (; word < words && left > 0; ++word, --left) clean_word(d.tree, node, container, word);
    }
    sub = 0, ++cell;
  }
}

// The end of a launch's part in a tree: what comes later finds a topology of another version.
COPPICE_KERNEL(mark_changed, Item, TreeState* tree)
{ tree->changed = 1; }
// Says that there is something to commit behind the launch of this number.
COPPICE_KERNEL(tell_changes, Item i, TreeState* tree, uint64_t launch)
{
  if (tree->changed == 0 && tree->lists_changed == 0) return;
  coppice_compare_exchange_u32(&i.launch->context->status, 0,
                               status_word(DeviceStatus::kTopologyChanged, launch));
}
COPPICE_KERNEL(count_version, Item, TreeState* tree)
{
  tree->version += tree->changed != 0;
  tree->lists_version += tree->changed != 0 || tree->lists_changed != 0;
  tree->changed = 0, tree->lists_changed = 0, tree->dirty = 0;
}
