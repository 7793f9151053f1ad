// Lists of dynamic nodes, for the host: their lengths, their elements, and how they are emptied.
//
// As in topology.kernels.cc, these run over any tree: layouts come as data.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

COPPICE_KERNEL(list_length_at, Item, const TreeState* tree, const NodeLayout* node, const int32_t* coord,
               uint64_t* length)
{
  const CellRef p = find(*node, tree, {coord[0], coord[1], coord[2]});
  *length = p.active ? list_length(node->level[node->depth - 1], tree, list_at(p)) : 0;
}

struct CoppiceElements {
  int32_t coord[3];
  uint32_t stride;
  uint64_t offset;  // of a field's first value in a chunk
  uint64_t value_bytes;
};
// Item i is element i.
COPPICE_KERNEL(read_elements, Item i, const TreeState* tree, const NodeLayout* node, CoppiceElements from,
               unsigned char* out)
{
  const LevelLayout& level = node->level[node->depth - 1];
  const CellRef p = find(*node, tree, {from.coord[0], from.coord[1], from.coord[2]});
  const auto index = static_cast<uint32_t>(i.index);
  const unsigned char* chunk = find_chunk(level, tree, view_list(level, tree, list_at(p)).first, index);
  const unsigned char* value =
      chunk + from.offset + index % level.chunk_cells * static_cast<uint64_t>(from.stride);
  __builtin_memcpy(out + i.index * static_cast<int64_t>(from.value_bytes), value, from.value_bytes);
}

// The i-th list of a dynamic node, counting through all cells of the containers of its parent; null where the
// cell is inactive. A node below the root has one list.
static ListHeader* list_number(const TreeState* tree, const NodeLayout* node, const LoopElement* parents,
                               uint64_t i) {
  if (node->depth == 1) return reinterpret_cast<ListHeader*>(tree->root + node->root_offset);
  const LevelLayout& above = node->level[node->depth - 2];
  unsigned char* container = parents[i / num_cells_of(above)].container;
  const auto index = static_cast<uint32_t>(i % num_cells_of(above));
  unsigned char* cell = container + above.cell_offset + index * above.cell_bytes;
  if (above.kind == NodeKind::kBitmasked && !mask_bit(container, index)) return nullptr;
  if (above.kind == NodeKind::kPointer) {
    const uint32_t id = slot_cell(container, index);
    if (id == kAmbientCell) return nullptr;
    cell = tree->allocators[above.allocator].cells + id * above.cell_bytes;
  }
  return reinterpret_cast<ListHeader*>(cell + above.child_offset);
}

// Before a run that makes room: nothing is wanted yet.
COPPICE_KERNEL(forget_wanted, Item, AllocatorState* a)
{ a->removals = a->activations = a->appends = 0; }
// The list whose first chunk a cell of a dynamic node's allocator is; null where it is none.
static ListHeader* list_of_first_chunk(const TreeState* tree, const LevelLayout& level, uint32_t cell) {
  const auto* chunk = reinterpret_cast<const CellHeader*>(chunk_at(level, tree, cell));
  if (cell == kAmbientCell || chunk->state != CellState::kLive || chunk->ordinal != 0) return nullptr;
  auto* list = reinterpret_cast<ListHeader*>(chunk->slot - 1);  // it is the upper half of the head
  return unpack_head(list->head).first == cell ? list : nullptr;
}
// From one of a list's chunks on to the one of that number, or to the last that is linked.
static LatestChunk walk_chunks(const LevelLayout& level, const TreeState* tree, LatestChunk from,
                               uint32_t number) {
  while (from.linked < number) {
    const uint32_t next = *next_chunk(level, tree, from.cell);
    if (next == 0) break;
    from = {next, from.linked + 1};
  }
  return from;
}
// Makes it the one that walks of the list begin at.
static void remember_latest(const LevelLayout& level, const TreeState* tree, uint32_t first,
                            LatestChunk latest) {
  reinterpret_cast<ChunkHeader*>(chunk_at(level, tree, first))->latest =
      latest.linked == 1 ? 0 : pack(latest);
}
COPPICE_KERNEL(count_handed_out, Item, const AllocatorState* a, uint64_t* cells)
{ *cells = handed_out(*a); }
// Items are the cells of the allocator, those of lists below new cells, too.
COPPICE_KERNEL(forget_wanted_elements, Item i, TreeState* tree, const NodeLayout* node)
{
  const LevelLayout& level = node->level[node->depth - 1];
  const auto cell = static_cast<uint32_t>(i.index);
  if (list_of_first_chunk(tree, level, cell) != nullptr)
    reinterpret_cast<ChunkHeader*>(chunk_at(level, tree, cell))->wanted = 0;
}
// Behind a run that made room: lists have chunks that nothing was appended to yet. Walks begin where the list
// ends, or each append of the launch would begin at the first chunk.
COPPICE_KERNEL(hide_wanted_chunks, Item i, TreeState* tree, const NodeLayout* node)
{
  const LevelLayout& level = node->level[node->depth - 1];
  const auto first = static_cast<uint32_t>(i.index);
  const ListHeader* list = list_of_first_chunk(tree, level, first);
  if (list == nullptr) return;
  const uint32_t asked = unpack_head(list->head).asked;
  const uint32_t chunks = asked == 0 ? 1 : (asked - 1) / level.chunk_cells + 1;
  remember_latest(level, tree, first, walk_chunks(level, tree, {first, 1}, chunks));
}
// Behind the launch: the latest chunk is the last that is linked, also where nothing came.
COPPICE_KERNEL(show_wanted_chunks, Item i, TreeState* tree, const NodeLayout* node)
{
  const LevelLayout& level = node->level[node->depth - 1];
  const auto first = static_cast<uint32_t>(i.index);
  if (list_of_first_chunk(tree, level, first) == nullptr) return;
  remember_latest(level, tree, first, walk_chunks(level, tree, latest_chunk(level, tree, first), ~0u));
}
// Where there was too little memory for all of them: lists give back the chunks that nothing is in.
COPPICE_KERNEL(drop_wanted_chunks, Item i, TreeState* tree, const NodeLayout* node)
{
  const LevelLayout& level = node->level[node->depth - 1];
  const auto first = static_cast<uint32_t>(i.index);
  ListHeader* list = list_of_first_chunk(tree, level, first);
  if (list == nullptr) return;
  const uint32_t asked = unpack_head(list->head).asked;
  if (asked == 0) {
    clear_list(tree, level, list);
    return;
  }
  const LatestChunk latest = walk_chunks(level, tree, {first, 1}, (asked - 1) / level.chunk_cells + 1);
  if (recycle_slot(&tree->allocators[level.allocator], next_chunk(level, tree, latest.cell)))
    set_flag(&tree->lists_changed);
  remember_latest(level, tree, first, latest);
}
// A launch leaves what it deactivates free for others only behind it. So this wants room for all of that to
// come again, which it does as often as something is activated or appended. Of a list that is emptied the
// chunks come again one by one, and each emptying begins a new one. `chunk_cells` is 0 for a pointer node;
// `most` is what the allocator may have at most, which may be enough all the same.
COPPICE_KERNEL(want_removed, Item i, AllocatorState* a, uint64_t chunk_cells, uint64_t most)
{
  if (a->removals == 0) return;
  const uint64_t chunks = chunk_cells == 0 ? 0 : a->appends / chunk_cells + 1;
  const uint64_t comings = chunk_cells == 0 ? a->activations : a->appends;
  const uint64_t again = a->removals < comings ? a->removals : comings;
  const uint32_t left = a->free_size - (a->free_used < a->free_size ? a->free_used : a->free_size);
  const uint64_t wanted = uint64_t{handed_out(*a)} - left + again + chunks;
  const uint64_t needed = wanted < most ? wanted : most;
  if (needed <= a->capacity) return;
  a->shortage += static_cast<uint32_t>(needed - a->capacity);
  coppice_compare_exchange_u32(&i.launch->context->status, 0,
                               status_word(DeviceStatus::kNoRoom, launch_number(*i.launch)));
}

COPPICE_KERNEL(clear_lists, Item i, TreeState* tree, const NodeLayout* node, const LoopElement* parents)
{
  ListHeader* list = list_number(tree, node, parents, static_cast<uint64_t>(i.index));
  if (list != nullptr) clear_list(tree, node->level[node->depth - 1], list);
}

// All lists there are: the cells of as many containers.
COPPICE_KERNEL(count_lists, Item, const uint64_t* containers, uint64_t cells, uint64_t* lists)
{ *lists = *containers * cells; }
