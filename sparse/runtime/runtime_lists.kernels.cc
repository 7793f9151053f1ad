// Lists of dynamic nodes, for the host: their lengths, their elements, and how they are emptied.
//
// As in topology.kernels.cc, these run over any tree: layouts come as data.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

COPPICE_KERNEL(list_length_at, Item, const TreeState* tree, const NodeLayout* node, const int32_t* coord,
               uint64_t* length)
{
  const Place p = find(*node, tree, {coord[0], coord[1], coord[2]});
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
  const Place p = find(*node, tree, {from.coord[0], from.coord[1], from.coord[2]});
  const auto index = static_cast<uint32_t>(i.index);
  const unsigned char* chunk = find_chunk(level, tree, view_list(level, tree, list_at(p)).first, index);
  const unsigned char* value =
      chunk + from.offset + index % level.chunk_cells * static_cast<uint64_t>(from.stride);
  __builtin_memcpy(out + i.index * static_cast<int64_t>(from.value_bytes), value, from.value_bytes);
}

// The i-th list of a dynamic node, counting through all cells of the containers of its parent; null where the cell is
// inactive. A node below the root has one list.
static ListHeader* list_number(const TreeState* tree, const NodeLayout* node, const Element* parents,
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
{ a->removals = a->appends = 0; }
COPPICE_KERNEL(forget_wanted_elements, Item i, TreeState* tree, const NodeLayout* node,
               const Element* parents)
{
  const ListHeader* list = list_number(tree, node, parents, static_cast<uint64_t>(i.index));
  if (list == nullptr || !has_chunk(unpack_head(list->head))) return;
  const LevelLayout& level = node->level[node->depth - 1];
  reinterpret_cast<ChunkHeader*>(chunk_at(level, tree, unpack_head(list->head).first))->wanted = 0;
}

COPPICE_KERNEL(clear_lists, Item i, TreeState* tree, const NodeLayout* node, const Element* parents)
{
  ListHeader* list = list_number(tree, node, parents, static_cast<uint64_t>(i.index));
  if (list != nullptr) clear_list(tree, node->level[node->depth - 1], list);
}

// All lists there are: the cells of as many containers.
COPPICE_KERNEL(count_lists, Item, const uint64_t* containers, uint64_t cells, uint64_t* lists)
{ *lists = *containers * cells; }
