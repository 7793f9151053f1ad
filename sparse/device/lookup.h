// Tree walks of compiled kernels: from a coordinate to a cell, with or without activation.
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

// For a value that several threads may write at once: whole, where it is one machine word.
template <class T>
COPPICE_INLINE void store_shared(T* p, const T& v) {
  if constexpr (sizeof(T) <= 8 && sizeof(T) == alignof(T)) {
    T copy = v;
    __atomic_store(p, &copy, __ATOMIC_RELAXED);
  } else {
    *p = v;
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
  if (coppice_compare_exchange_u32(&context->status, 0, static_cast<uint32_t>(status)) != 0) return;
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

COPPICE_INLINE bool in_domain(const NodeLayout& node, Coord c) {
  const uint32_t x = c.x - node.origin[0], y = c.y - node.origin[1], z = c.z - node.origin[2];
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
  const uint32_t x = c.x - node.origin[0], y = c.y - node.origin[1], z = c.z - node.origin[2];
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

// A zeroed cell, or 0 when the allocator is out of committed cells (then the shortage is counted).
inline uint32_t allocate_cell(AllocatorState* a) {
  if (relaxed_load(&a->free_used) < a->free_size) {
    const uint32_t taken = coppice_fetch_add_u32(&a->free_used, 1);
    if (taken < a->free_size) return a->free_list[taken];
  }
  // Counted down again on failure, so that the count cannot wrap however long a launch keeps asking.
  if (relaxed_load(&a->num_cells) < a->capacity) {
    const uint32_t fresh = coppice_fetch_add_u32(&a->num_cells, 1);
    if (fresh < a->capacity) return fresh;
    coppice_fetch_add_u32(&a->num_cells, ~0u);
  }
  coppice_fetch_add_u32(&a->shortage, 1);
  return 0;
}

// The cell in a slot, allocated when the slot is empty (double-checked locking; the lock is the slot itself).
// Returns 0 when the allocator is out of cells: the slot is empty again, so nobody waits for ever.
inline uint32_t activate_slot(const LaunchBlock* block, uint32_t tree_slot, const LevelLayout& level,
                              uint32_t* slot, Coord cell_coord) {
  TreeState* tree = tree_state(block, tree_slot);
  AllocatorState* a = &tree->allocators[level.allocator];
  for (;;) {
    uint32_t now = coppice_load_acquire_u32(slot);
    if (now != 0 && now != kLocked) return now;
    if (now == 0) now = coppice_compare_exchange_u32(slot, 0, kLocked);
    if (now == 0) break;  // this thread holds the lock
    if (now != kLocked) return now;
    if (relaxed_load(&block->context->status) == static_cast<uint32_t>(DeviceStatus::kOutOfCells)) return 0;
    coppice_pause();
  }
  const uint32_t cell = allocate_cell(a);
  if (cell == 0) {
    raise_status(block, DeviceStatus::kOutOfCells, tree_slot, level.allocator, cell_coord);
  } else {
    auto* header = reinterpret_cast<CellHeader*>(a->cells + cell * level.cell_bytes);
    header->coord[0] = cell_coord.x, header->coord[1] = cell_coord.y, header->coord[2] = cell_coord.z;
    header->slot = slot;
    header->state = CellState::kLive;
    relaxed_store(&tree->changed, 1u);
  }
  coppice_store_release_u32(slot, cell);  // publishes the header; the payload was zero before the launch
  return cell;
}

COPPICE_INLINE void activate_bit(TreeState* tree, unsigned char* container, uint32_t index) {
  if (mask_bit(container, index)) return;
  coppice_fetch_or_u64(reinterpret_cast<uint64_t*>(container) + (index >> 6), 1ull << (index & 63));
  relaxed_store(&tree->changed, 1u);
}

COPPICE_INLINE Coord cell_coord_at(const LevelLayout& level, uint32_t x, uint32_t y, uint32_t z) {
  return {static_cast<int32_t>(x / level.span[0]), static_cast<int32_t>(y / level.span[1]),
          static_cast<int32_t>(z / level.span[2])};
}

// Walks down and activates every node on the way. `binding` is the handle's, for the status.
COPPICE_INLINE Place find_or_activate(const LaunchBlock* block, const NodeLayout& node, uint32_t tree_slot,
                                      uint32_t binding, Coord c) {
  TreeState* tree = tree_state(block, tree_slot);
  const uint32_t x = c.x - node.origin[0], y = c.y - node.origin[1], z = c.z - node.origin[2];
  if (!(x < node.domain[0] && y < node.domain[1] && z < node.domain[2])) {
    raise_status(block, DeviceStatus::kOutsideDomain, tree_slot, binding, c);
    return {tree->ambient, 0, false};
  }
  unsigned char* container = tree->root + node.root_offset;
  uint32_t index = 0;
  COPPICE_UNROLL
  for (int l = 0; l < kMaxDepth; ++l) {
    if (l >= static_cast<int>(node.depth)) break;
    const LevelLayout& level = node.level[l];
    const bool last = l + 1 == static_cast<int>(node.depth);
    index = cell_index(level, x, y, z);
    unsigned char* cell;
    if (level.kind == NodeKind::kPointer) {
      const uint32_t id =
          activate_slot(block, tree_slot, level, reinterpret_cast<uint32_t*>(container) + index,
                        cell_coord_at(level, x, y, z));
      if (id == 0) return {tree->ambient, 0, false};
      cell = tree->allocators[level.allocator].cells + id * level.cell_bytes;
    } else {
      if (level.kind == NodeKind::kBitmasked) activate_bit(tree, container, index);
      cell = container + level.cell_offset + index * level.cell_bytes;
    }
    if (last) break;
    container = cell + level.child_offset;
  }
  return {container, index, true};
}

COPPICE_INLINE void zero_bytes(unsigned char* p, uint64_t n) { __builtin_memset(p, 0, n); }

// Is the cell at a coordinate active, all its ancestors included?
COPPICE_INLINE bool is_active(const NodeLayout& node, const Place& p) {
  const LevelLayout& last = node.level[node.depth - 1];
  if (last.kind == NodeKind::kPointer) return p.active && slot_cell(p.container, p.index) != kAmbientCell;
  if (last.kind == NodeKind::kBitmasked) return p.active && mask_bit(p.container, p.index);
  return p.active;
}

// Deactivates one cell: a pointer slot is emptied and its cell queued for collection, a bit is cleared and its values
// zeroed. Twice is once (the exchange has one winner). Dense cells are always active.
COPPICE_INLINE void deactivate(const LaunchBlock* block, const NodeLayout& node, uint32_t tree_slot,
                               Coord c) {
  TreeState* tree = tree_state(block, tree_slot);
  const Place p = find(node, tree, c);
  if (!p.active) return;
  const LevelLayout& last = node.level[node.depth - 1];
  if (last.kind == NodeKind::kPointer) {
    auto* slot = reinterpret_cast<uint32_t*>(p.container) + p.index;
    // A locked slot is being activated elsewhere; it counts as not active yet, and its lock must not be broken.
    const uint32_t cell = coppice_load_acquire_u32(slot);
    if (cell == 0 || cell == kLocked || coppice_compare_exchange_u32(slot, cell, 0) != cell) return;
    AllocatorState* a = &tree->allocators[last.allocator];
    a->recycled_list[coppice_fetch_add_u32(&a->recycled_size, 1)] = cell;
    relaxed_store(&tree->changed, 1u);
  } else if (last.kind == NodeKind::kBitmasked) {
    if (!mask_bit(p.container, p.index)) return;
    const uint64_t bit = 1ull << (p.index & 63);
    auto* word = reinterpret_cast<uint64_t*>(p.container) + (p.index >> 6);
    if ((coppice_fetch_and_u64(word, ~bit) & bit) == 0) return;
    // Inactive cells hold zeros, so that no reader needs to test the bit.
    COPPICE_UNROLL
    for (int i = 0; i < kMaxFieldsPerNode; ++i) {
      if (i >= static_cast<int>(node.num_arrays)) break;
      const ValueArray& array = node.arrays[i];
      zero_bytes(p.container + array.offset + p.index * static_cast<uint64_t>(array.stride), array.bytes);
    }
    zero_bytes(p.container + last.cell_offset + p.index * last.cell_bytes, last.cell_bytes);
    relaxed_store(&tree->changed, 1u);
  }
}

}  // namespace coppice::device
