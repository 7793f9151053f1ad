// Tree walks of compiled kernels: from a coordinate to a cell, without activation (activation.h has the others).
//
// Device-clean. Everything here runs over constant layouts (layout.h) and folds to straight code. Reads never
// activate: an empty or locked slot leads to the ambient cell, a coordinate outside the domain to the ambient region.
#pragma once
#include "core/device_macros.h"
#include "gpu/device_intrinsics.h"
#include "gpu/launch_block.h"
#include "sparse/device/layout.h"

namespace coppice::device {

// A coordinate; a tree of fewer dimensions uses the rightmost components and leaves the others 0.
struct Coord {
  int32_t x, y, z;
};

// Where a walk ended: cell `index` of a container of the path's last node.
struct Place {
  unsigned char* container;
  uint32_t index;
  bool active;  // inside the domain, and every ancestor is active
};

// Plain words that other threads may be changing.
template <class T>
COPPICE_INLINE T relaxed_load(const T* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T>
COPPICE_INLINE void relaxed_store(T* p, T v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

// For a value that several threads may write, or one may write while others read: whole, where it is one machine word.
template <class T>
inline constexpr bool is_one_word = sizeof(T) <= 8 && sizeof(T) == alignof(T) && __is_trivially_copyable(T);
template <class T>
COPPICE_INLINE void store_shared(T* p, const T& v) {
  if constexpr (is_one_word<T>) {
    T copy = v;
    __atomic_store(p, &copy, __ATOMIC_RELAXED);
  } else {
    *p = v;
  }
}
template <class T>
COPPICE_INLINE T load_shared(const T* p) {
  if constexpr (is_one_word<T>) {
    T copy;
    __atomic_load(p, &copy, __ATOMIC_RELAXED);
    return copy;
  } else {
    return *p;
  }
}

COPPICE_INLINE TreeState* tree_state(const LaunchBlock* block, uint32_t tree) {
  return static_cast<TreeState*>(block->trees[tree]);
}

// The launch goes on; when it is done, the host makes an Error of the first status (sparse/launch_errors.h).
struct StatusPlace {
  int64_t coord[3];
  Coord offset;
};
COPPICE_INLINE void raise_status(const LaunchBlock* block, DeviceStatus status, uint32_t tree,
                                 uint32_t detail, const StatusPlace& at) {
  DeviceContext* context = block->context;
  if (coppice_compare_exchange_u32(&context->status, 0, status_word(status, launch_number(*block))) != 0)
    return;
  context->status_tree = tree;
  context->status_detail = detail;
  COPPICE_UNROLL
  for (int i = 0; i < 3; ++i) context->status_coord[i] = at.coord[i];
  context->status_offset[0] = at.offset.x, context->status_offset[1] = at.offset.y,
  context->status_offset[2] = at.offset.z;
}
COPPICE_INLINE void raise_status(const LaunchBlock* block, DeviceStatus status, uint32_t tree,
                                 uint32_t detail, Coord c, Coord offset = {0, 0, 0}) {
  raise_status(block, status, tree, detail, StatusPlace{{c.x, c.y, c.z}, offset});
}

// A coordinate as seen from a node's lowest one. Unsigned, for the difference of two coordinates has 33 bits; below the
// origin it comes out larger than any domain, which ends at 2^31 (tree_layout.cc).
struct Offset {
  uint32_t x, y, z;
};
COPPICE_INLINE Offset from_origin(const NodeLayout& node, Coord c) {
  return {static_cast<uint32_t>(c.x) - static_cast<uint32_t>(node.origin[0]),
          static_cast<uint32_t>(c.y) - static_cast<uint32_t>(node.origin[1]),
          static_cast<uint32_t>(c.z) - static_cast<uint32_t>(node.origin[2])};
}

COPPICE_INLINE bool in_domain(const NodeLayout& node, Coord c) {
  const auto [x, y, z] = from_origin(node, c);
  return x < node.domain[0] && y < node.domain[1] && z < node.domain[2];
}

COPPICE_INLINE uint32_t cell_index(const LevelLayout& l, uint32_t x, uint32_t y, uint32_t z) {
  const uint32_t i = x / l.span[0] % l.extent[0], j = y / l.span[1] % l.extent[1],
                 k = z / l.span[2] % l.extent[2];
  return (i * l.extent[1] + j) * l.extent[2] + k;
}

COPPICE_INLINE bool mask_bit(const unsigned char* container, uint32_t index) {
  return relaxed_load(reinterpret_cast<const uint64_t*>(container) + (index >> 6)) >> (index & 63) & 1;
}

// The cell that a slot holds; empty and locked slots give the ambient cell.
COPPICE_INLINE uint32_t slot_cell(const unsigned char* container, uint32_t index) {
  const uint32_t slot = coppice_load_acquire_u32(reinterpret_cast<const uint32_t*>(container) + index);
  return slot == kLocked ? kAmbientCell : slot;
}

// Walks down without activating. Cost: one load per pointer level.
COPPICE_INLINE Place find(const NodeLayout& node, const TreeState* tree, Coord c) {
  const auto [x, y, z] = from_origin(node, c);
  if (!(x < node.domain[0] && y < node.domain[1] && z < node.domain[2])) return {tree->ambient, 0, false};
  unsigned char* container = tree->root + node.root_offset;
  bool active = true;
  COPPICE_UNROLL
  for (int l = 0; l + 1 < kMaxDepth; ++l) {
    const LevelLayout& level = node.level[l];
    const uint32_t index = cell_index(level, x, y, z);
    if (l + 1 >= static_cast<int>(node.depth)) return {container, index, active};
    unsigned char* cell;
    if (level.kind == NodeKind::kPointer) {
      const uint32_t id = slot_cell(container, index);
      active = active && id != kAmbientCell;
      cell = tree->allocators[level.allocator].cells + id * level.cell_bytes;
    } else if (level.kind == NodeKind::kBitmasked && !mask_bit(container, index)) {
      return {tree->ambient, 0, false};
    } else {
      cell = container + level.cell_offset + index * level.cell_bytes;
    }
    container = cell + level.child_offset;
  }
  return {container, cell_index(node.level[kMaxDepth - 1], x, y, z), active};
}

// ---- dynamic nodes: the lists that containers are

COPPICE_INLINE ListHeader* list_at(const Place& p) { return reinterpret_cast<ListHeader*>(p.container); }

// Elements that are there, each in a linked chunk. (Chunks are linked in order, and counted after they are linked.)
COPPICE_INLINE uint32_t list_length(const LevelLayout& level, const ListHeader* list) {
  const uint64_t held = static_cast<uint64_t>(coppice_load_acquire_u32(&list->linked)) * level.chunk_cells;
  const uint64_t asked = static_cast<uint32_t>(relaxed_load(&list->asked));
  return static_cast<uint32_t>(asked < held ? asked : held);
}

COPPICE_INLINE uint32_t chunk_ordinal(const unsigned char* chunk) {
  return reinterpret_cast<const CellHeader*>(chunk)->ordinal;
}

// The chunk cell that holds element `index`; the ambient cell where none is linked. Cost: one load per chunk between
// the list's latest chunk, or its first, and the one wanted.
COPPICE_INLINE unsigned char* find_chunk(const LevelLayout& level, const TreeState* tree,
                                         const ListHeader* list, uint32_t index) {
  unsigned char* cells = tree->allocators[level.allocator].cells;
  const uint32_t wanted = index / level.chunk_cells;
  uint32_t cell = coppice_load_acquire_u32(&list->last), at = 0;
  if (cell != 0) at = chunk_ordinal(cells + cell * level.cell_bytes);
  if (cell == 0 || at > wanted) {
    at = 0;
    cell = slot_cell(reinterpret_cast<const unsigned char*>(&list->first), 0);
  }
  for (; at < wanted && cell != kAmbientCell; ++at)
    cell = slot_cell(cells + cell * level.cell_bytes + kNextChunk, 0);
  return cells + cell * level.cell_bytes;
}

// Is the cell at a coordinate active, all its ancestors included? A list is while it has elements.
COPPICE_INLINE bool is_active(const NodeLayout& node, const Place& p) {
  const LevelLayout& last = node.level[node.depth - 1];
  if (last.kind == NodeKind::kPointer) return p.active && slot_cell(p.container, p.index) != kAmbientCell;
  if (last.kind == NodeKind::kBitmasked) return p.active && mask_bit(p.container, p.index);
  if (last.kind == NodeKind::kDynamic) return p.active && list_length(last, list_at(p)) > 0;
  return p.active;
}

}  // namespace coppice::device
