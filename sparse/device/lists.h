// Appending to and writing the lists of dynamic nodes.
//
// Device-clean. An append is one atomic add (for all threads of a warp that append to the same list), a walk from the
// list's latest chunk, and where that is full the activation of the next one, whose slot is in the chunk before it.
//
// A launch that appends is repeated when cells run out, so its elements must be able to go again: the first thread that
// touches a list in a run (TreeState::append_epoch) notes how long the list was, and the host takes lists of a run that
// failed back to that (sparse/runtime/topology.kernels.cc).
#pragma once
#include "sparse/device/checks.h"

namespace coppice::device {

inline constexpr uint32_t kNoIndex = ~0u;  // what a refused append returns

// Before a list's length changes for the first time in a run of a launch. Returns the elements asked for so far.
COPPICE_INLINE uint32_t touch_list(TreeState* tree, ListHeader* list) {
  const uint64_t now = relaxed_load(&list->asked), epoch = relaxed_load(&tree->append_epoch);
  const auto asked = static_cast<uint32_t>(now);
  if (now >> 32 == epoch) return asked;
  // Nobody adds to it while the old epoch stands, so all who come here note the same number.
  relaxed_store(&list->committed, asked);
  uint64_t expected = now;
  __atomic_compare_exchange_n(&list->asked, &expected, epoch << 32 | asked, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
  set_flag(&tree->lists_changed);
  return static_cast<uint32_t>(relaxed_load(&list->asked));
}

// The chunk cell that holds element `index`, with all before it linked. Null when the allocator is out of cells.
inline unsigned char* find_or_link_chunk(const LaunchBlock* block, uint32_t tree_slot,
                                         const LevelLayout& level, ListHeader* list, uint32_t index,
                                         Coord list_coord) {
  unsigned char* cells = tree_state(block, tree_slot)->allocators[level.allocator].cells;
  const uint32_t wanted = index / level.chunk_cells;
  uint32_t cell = coppice_load_acquire_u32(&list->last), at = 0;
  if (cell != 0) at = chunk_ordinal(cells + cell * level.cell_bytes);
  const bool goes_on = cell == 0 || at <= wanted;
  uint32_t* slot = &list->first;
  if (cell == 0 || at > wanted)
    at = 0;
  else if (at == wanted)
    return cells + cell * level.cell_bytes;
  else
    slot = reinterpret_cast<uint32_t*>(cells + cell * level.cell_bytes + kNextChunk), ++at;
  for (;; ++at) {
    cell = coppice_load_acquire_u32(slot);
    if (cell == 0 || cell == kLocked) {
      cell = activate_slot(block, tree_slot, level, slot, {list_coord, at});
      if (cell == 0) return nullptr;
      // Counted only where the link can be seen: a reader trusts the count.
      coppice_fence();
      coppice_fetch_max_u32(&list->linked, at + 1);
    }
    unsigned char* chunk = cells + cell * level.cell_bytes;
    if (at == wanted) {
      // Whoever went on from the latest chunk leaves a later one, also where another thread, or a run before, had linked
      // it: otherwise each append of a repeated launch walks the whole list.
      if (goes_on) coppice_store_release_u32(&list->last, cell);
      return chunk;
    }
    slot = reinterpret_cast<uint32_t*>(chunk + kNextChunk);
  }
}

template <class T>
COPPICE_INLINE T* element_at(const LevelLayout& level, const FieldBinding& f, unsigned char* chunk,
                             uint32_t index) {
  return reinterpret_cast<T*>(chunk + f.offset + index % level.chunk_cells * static_cast<uint64_t>(f.stride));
}

// Where a list is, with all above it activated.
struct ListPlace {
  ListHeader* list;  // null: outside the domain, or out of cells
  TreeState* tree;
  Coord coord;  // in lists, from the origin: what chunks keep
};
COPPICE_INLINE ListPlace open_list(const LaunchBlock* block, uint32_t binding, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const Place p = find_or_activate(block, node, f.tree, binding, c);
  return {p.active ? list_at(p) : nullptr,
          tree_state(block, f.tree),
          {c.x - node.origin[0], c.y - node.origin[1], c.z - node.origin[2]}};
}

COPPICE_INLINE void raise_list_full(const LaunchBlock* block, uint32_t binding, int64_t index, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  coppice_fetch_add_u64(&block->context->missed_writes, 1);
  raise_status(block, DeviceStatus::kListFull, f.tree, binding,
               StatusPlace{{index, node.level[node.depth - 1].max_length, 0}, c});
}

// Appends a value to the list at `c`; its index, or kNoIndex when the list or the memory is full.
template <class T>
COPPICE_INLINE uint32_t append(const LaunchBlock* block, uint32_t binding, Coord c, const T& value) {
  const FieldBinding& f = coppice_fields[binding];
  const LevelLayout& level = coppice_nodes[f.node].level[coppice_nodes[f.node].depth - 1];
  const ListPlace p = open_list(block, binding, c);
  if (p.list == nullptr) return kNoIndex;
  uint32_t index = touch_list(p.tree, p.list);
  if (index < level.max_length) {
    index = warp_fetch_increment(&p.list->asked);
    // Counted down again, so that the count cannot wrap however long a launch keeps asking.
    if (index >= level.max_length) coppice_fetch_add_u64(&p.list->asked, ~uint64_t{0});
  }
  if (index >= level.max_length) {
    raise_list_full(block, binding, index, c);
    return kNoIndex;
  }
  unsigned char* chunk = find_or_link_chunk(block, f.tree, level, p.list, index, p.coord);
  if (chunk == nullptr) return kNoIndex;
  store_shared(element_at<T>(level, f, chunk, index), value);  // others may read what is counted
  return index;
}

// Writes element `index`; a list that is shorter gets as long as that needs, with zeros between.
template <class T>
COPPICE_INLINE void set_element(const LaunchBlock* block, uint32_t binding, Coord c, int64_t index,
                                const T& value) {
  const FieldBinding& f = coppice_fields[binding];
  const LevelLayout& level = coppice_nodes[f.node].level[coppice_nodes[f.node].depth - 1];
  if (index < 0 || index >= level.max_length) {
    raise_list_full(block, binding, index, c);
    return;
  }
  const ListPlace p = open_list(block, binding, c);
  if (p.list == nullptr) return;
  touch_list(p.tree, p.list);
  const auto at = static_cast<uint32_t>(index);
  unsigned char* chunk = find_or_link_chunk(block, f.tree, level, p.list, at, p.coord);
  if (chunk == nullptr) return;
  store_shared(element_at<T>(level, f, chunk, at), value);
  // The upper half is the epoch, the same for all who write in this run.
  uint64_t now = relaxed_load(&p.list->asked);
  while (static_cast<uint32_t>(now) <= at &&
         !__atomic_compare_exchange_n(&p.list->asked, &now, (now >> 32 << 32) | (at + 1), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// The length of the list at `c`, 0 where there is none.
COPPICE_INLINE uint32_t length_at(const LaunchBlock* block, uint32_t binding, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const Place p = find(node, tree_state(block, f.tree), c);
  return p.active ? list_length(node.level[node.depth - 1], list_at(p)) : 0;
}

// Element `index`; zero where the list has none.
template <class T>
COPPICE_INLINE T element(const LaunchBlock* block, uint32_t binding, Coord c, int64_t index) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const LevelLayout& level = node.level[node.depth - 1];
  TreeState* tree = tree_state(block, f.tree);
  const Place p = find(node, tree, c);
  const int64_t length = p.active ? list_length(level, list_at(p)) : 0;
  if (index < 0 || index >= length) {
    if (debug_checks())
      raise_status(block, DeviceStatus::kOutOfList, f.tree, binding, StatusPlace{{index, length, 0}, c});
    return T{};
  }
  const auto at = static_cast<uint32_t>(index);
  return load_shared(element_at<T>(level, f, find_chunk(level, tree, list_at(p), at), at));
}

}  // namespace coppice::device
