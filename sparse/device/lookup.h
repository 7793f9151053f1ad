// Tree walks of compiled kernels: from a coordinate to a cell, without activation
// (activation.h has the others).
//
// Device-clean. Everything here runs over constant layouts (layout.h) and folds to straight code. Reads never
// activate: an empty or locked slot leads to the ambient cell, a coordinate outside
// the domain to the ambient region.
#pragma once
#include "core/device_macros.h"
#include "gpu/device_intrinsics.h"
#include "gpu/launch_block.h"
#include "sparse/device/layout.h"

namespace coppice::device {

// Holds a coordinate; a tree of fewer dimensions uses the rightmost components and leaves the others 0.
struct Coord {
  int32_t x, y, z;
};

// Says where a walk ended: at cell `index` of a container of the path's last node.
struct CellRef {
  unsigned char* container;
  uint32_t index;
  bool active;  // inside the domain, and every ancestor is active
};

// These load and store plain words that other threads may be changing.
template <class T>
COPPICE_INLINE T relaxed_load(const T* p) {
  return __atomic_load_n(p, __ATOMIC_RELAXED);
}
template <class T>
COPPICE_INLINE void relaxed_store(T* p, T v) {
  __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

// The swap is relaxed; where it fails, `expected` gets what is there.
COPPICE_INLINE bool compare_exchange(uint32_t* p, uint32_t* expected, uint32_t desired) {
  return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
COPPICE_INLINE bool compare_exchange(uint64_t* p, uint64_t* expected, uint64_t desired) {
  return __atomic_compare_exchange_n(p, expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Stores a value that several threads may write, or that one may write while others read: whole, where it
// is one machine word.
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

// A launch that must not be repeated, where memory must be mapped before it, is run by its kernel twice:
// first only to make room. Then it activates, links chunks for what it would append, and counts; it stores,
// adds, appends, deactivates, prints and complains of nothing. What handles do is left out here and by their
// methods, what a kernel stores by itself by the specializer (gpu/jit/remove_effects.cc).
COPPICE_INLINE bool makes_room() { return coppice_makes_room != 0; }

// Says where a status was raised. The launch goes on; when it is done, the host makes an Error of the
// first status (sparse/launch_errors.h).
struct StatusPlace {
  int64_t coord[3];
  Coord offset;
};
COPPICE_INLINE void raise_status(const LaunchBlock* block, DeviceStatus status, uint32_t tree,
                                 uint32_t detail, const StatusPlace& at) {
  DeviceContext* context = block->context;
  if (makes_room()) {
    if (status != DeviceStatus::kOutOfCells) return;
    status = DeviceStatus::kNoRoom;
  }
  // Where one item has a status so have thousands: all but the first ones only look.
  if (relaxed_load(&context->status) != 0 ||
      coppice_compare_exchange_u32(&context->status, 0, status_word(status, launch_number(*block))) != 0)
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

// Holds a coordinate as seen from a node's lowest one. It is unsigned, for the difference of two
// coordinates has 33 bits; below the origin it comes out larger than any domain, which ends at 2^31
// (tree_layout.cc).
struct Offset {
  uint32_t x, y, z;
};
COPPICE_INLINE Offset from_origin(const NodeLayout& node, Coord c) {
  return {static_cast<uint32_t>(c.x) - static_cast<uint32_t>(node.origin[0]),
          static_cast<uint32_t>(c.y) - static_cast<uint32_t>(node.origin[1]),
          static_cast<uint32_t>(c.z) - static_cast<uint32_t>(node.origin[2])};
}

// Wraps instead of overflowing; what wrapped is outside every domain, which ends at 2^31 (tree_layout.cc).
COPPICE_INLINE int32_t plus(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
COPPICE_INLINE Coord plus(Coord a, Coord b) { return {plus(a.x, b.x), plus(a.y, b.y), plus(a.z, b.z)}; }

// Returns whether an allocator has run out of cells in this launch: then it has none for anybody until the
// launch is over.
COPPICE_INLINE bool has_refused(const AllocatorState& a) { return relaxed_load(&a.shortage) != 0; }

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

// Returns the cell that a slot holds; empty and locked slots give the ambient cell.
COPPICE_INLINE uint32_t slot_cell(const unsigned char* container, uint32_t index) {
  const uint32_t slot = relaxed_load(reinterpret_cast<const uint32_t*>(container) + index);
  return slot == kLocked ? kAmbientCell : slot;
}

// Walks down without activating. Cost: one load per pointer level.
COPPICE_INLINE CellRef find(const NodeLayout& node, const TreeState* tree, Coord c) {
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

COPPICE_INLINE ListHeader* list_at(const CellRef& p) { return reinterpret_cast<ListHeader*>(p.container); }

COPPICE_INLINE unsigned char* chunk_at(const LevelLayout& level, const TreeState* tree, uint32_t cell) {
  return tree->allocators[level.allocator].cells + cell * level.cell_bytes;
}
// Returns the slot of the chunk behind a chunk.
COPPICE_INLINE uint32_t* next_chunk(const LevelLayout& level, const TreeState* tree, uint32_t cell) {
  return reinterpret_cast<uint32_t*>(chunk_at(level, tree, cell) + kNextChunk);
}

// Returns the latest chunk of the list that begins with `first`. This is an acquire: all that the thread
// knew that linked it, the slots of all chunks before it included, is known from here on.
COPPICE_INLINE LatestChunk latest_chunk(const LevelLayout& level, const TreeState* tree, uint32_t first) {
  const auto* header = reinterpret_cast<const ChunkHeader*>(chunk_at(level, tree, first));
  const LatestChunk latest = unpack_latest(coppice_load_acquire_u64(&header->latest));
  return latest.linked == 0 ? LatestChunk{first, 1} : latest;
}

// Shows a list as it is at one moment: what it held then can be read for as long as the launch runs,
// whoever clears the list. The head's load is relaxed: a first chunk's memory was zero before the launch,
// and zeros there say what is true.
struct ListView {
  uint32_t first;   // the ambient cell where there is none
  uint32_t length;  // elements that are there, each in a linked chunk
};
COPPICE_INLINE ListView view_list(const LevelLayout& level, const TreeState* tree, const ListHeader* list) {
  const ListHead head = unpack_head(relaxed_load(&list->head));
  if (!has_chunk(head)) return {kAmbientCell, 0};
  // Appends that are being refused are counted for a while.
  const uint32_t asked = head.asked < level.max_length ? head.asked : level.max_length;
  if (asked <= level.chunk_cells) return {head.first, asked};
  const uint64_t held = uint64_t{latest_chunk(level, tree, head.first).linked} * level.chunk_cells;
  return {head.first, static_cast<uint32_t>(asked < held ? asked : held)};
}
COPPICE_INLINE uint32_t list_length(const LevelLayout& level, const TreeState* tree, const ListHeader* list) {
  return view_list(level, tree, list).length;
}

// Returns the chunk cell that holds element `index` of the list that begins with `first`; the ambient cell
// where none is linked. Cost: one load per chunk between the list's latest chunk, or its first, and the
// one wanted.
COPPICE_INLINE unsigned char* find_chunk(const LevelLayout& level, const TreeState* tree, uint32_t first,
                                         uint32_t index) {
  const uint32_t wanted = index / level.chunk_cells;
  uint32_t cell = first, at = 0;
  if (wanted > 0) {
    const LatestChunk latest = latest_chunk(level, tree, first);
    if (latest.linked - 1 <= wanted) cell = latest.cell, at = latest.linked - 1;
  }
  for (; at < wanted && cell != kAmbientCell; ++at)
    cell = slot_cell(chunk_at(level, tree, cell) + kNextChunk, 0);
  return chunk_at(level, tree, cell);
}

COPPICE_INLINE bool is_empty(const ListHeader* list) {
  const ListHead head = unpack_head(relaxed_load(&list->head));
  return !has_chunk(head) || head.asked == 0;
}

// Returns whether the cell at a coordinate is active, all its ancestors included. A list is active while
// it has elements.
COPPICE_INLINE bool is_active(const NodeLayout& node, const CellRef& p) {
  const LevelLayout& last = node.level[node.depth - 1];
  if (last.kind == NodeKind::kPointer) return p.active && slot_cell(p.container, p.index) != kAmbientCell;
  if (last.kind == NodeKind::kBitmasked) return p.active && mask_bit(p.container, p.index);
  if (last.kind == NodeKind::kDynamic) return p.active && !is_empty(list_at(p));
  return p.active;
}

}  // namespace coppice::device
