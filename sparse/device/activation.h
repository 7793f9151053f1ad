// Activation and deactivation by compiled kernels, from any thread at any time.
//
// Device-clean. A pointer slot is its own lock: 0 is empty, kLocked is being filled, anything else is a
// cell. Slots are read and written relaxed: whoever finds a cell's number goes to what was zero before the
// launch, or is changed by atomic operations since, and to nothing that the thread which filled the slot has
// written before. An order would cost a GPU a fence for each new cell, and its L1 with each look at an old
// one. Threads of a warp that want the same slot elect one of them to try; the election saves work and
// nothing depends on it, since the slot's compare-and-swap decides. All counters of a warp's winners are
// raised by one atomic for all of them. The file is long because activation and deactivation of the kinds of
// nodes are one protocol, each side of which the other relies on.
#pragma once
#include "sparse/device/cells.h"
#include "sparse/device/lanes.h"
#include "sparse/device/masks.h"

namespace coppice::device {

// Holds what a new cell is to know of itself.
struct CellPlace {
  Coord coord;       // in cells of its node; of a chunk's list
  uint32_t ordinal;  // of a chunk
};

// Writes what a cell knows of itself, for those who read it after the launch.
COPPICE_INLINE void write_header(const AllocatorState* a, uint32_t cell, uint32_t* slot,
                                 const CellPlace& place) {
  auto* header = reinterpret_cast<CellHeader*>(a->cells + cell * a->cell_bytes);
  header->coord[0] = place.coord.x, header->coord[1] = place.coord.y, header->coord[2] = place.coord.z;
  header->slot = slot;
  header->ordinal = place.ordinal;
  header->state = CellState::kLive;
}

// Allocates for a slot that this thread has locked, and publishes. A failure empties the slot,
// so that nobody waits for ever.
inline uint32_t fill_slot(const LaunchBlock* block, uint32_t tree_slot, const LevelLayout& level,
                          uint32_t* slot, const CellPlace& place) {
  TreeState* tree = tree_state(block, tree_slot);
  AllocatorState* a = &tree->allocators[level.allocator];
  const uint32_t cell = allocate_cell(tree, a);
  if (cell == 0) {
    raise_status(block, DeviceStatus::kOutOfCells, tree_slot, level.allocator, place.coord);
  } else {
    write_header(a, cell, slot, place);
    set_flag(level.kind == NodeKind::kDynamic ? &tree->lists_changed : &tree->changed);
  }
  relaxed_store(slot, cell);
  return cell;
}

// Returns the cell in a slot, which is allocated when the slot is empty (double-checked locking), or 0
// when the allocator is out of cells.
inline uint32_t activate_slot(const LaunchBlock* block, uint32_t tree_slot, const LevelLayout& level,
                              uint32_t* slot, const CellPlace& place) {
  for (uint32_t turn = 0;; ++turn) {
    const uint32_t now = relaxed_load(slot);
    if (now != 0 && now != kLocked) return now;
    if (now == 0) {
      const uint32_t here = coppice_active_mask();
      const uint32_t same = coppice_match_any_u64(here, reinterpret_cast<uint64_t>(slot));
      const bool is_elected = coppice_warp_lane() == static_cast<uint32_t>(__builtin_ctz(same));
      uint32_t empty = 0;
      if (is_elected && compare_exchange(slot, &empty, kLocked))
        return fill_slot(block, tree_slot, level, slot, place);
    }
    // The thread that was to fill the slot may have failed, and others after it: nobody waits for what
    // cannot come. The thread that has locked it is waited for, as it may have the last cell. A swap sees
    // the lock where a load may miss it; a thread that locks the slot behind the swap finds none, either, as
    // the counters say so to whoever raises them.
    if (now == 0 && has_refused(tree_state(block, tree_slot)->allocators[level.allocator]) &&
        coppice_compare_exchange_u32(slot, 0, 0) == 0)
      return 0;
    coppice_pause(turn);
  }
}

inline void clean_cell(TreeState* tree, const LevelLayout& level, unsigned char* container, uint32_t index);

// Makes cells of one word of a bitmasked container's mask active, and sees to it that those hold zeros which
// were not. (The order is in masks.h.)
COPPICE_INLINE void activate_bits(TreeState* tree, const LevelLayout& level, unsigned char* container,
                                  uint32_t word, uint64_t bits) {
  const MaskWord m = mask_word(level, container, word);
  if ((coppice_load_acquire_u64(m.active) & bits) != bits) {
    coppice_fetch_or_u64(m.active, bits);
    coppice_fence();
    set_flag(&tree->changed);
  }
  for (uint64_t dirty = coppice_load_acquire_u64(m.dirty) & bits; dirty != 0; dirty &= dirty - 1)
    clean_cell(tree, level, container, word * 64 + static_cast<uint32_t>(__builtin_ctzll(dirty)));
}
COPPICE_INLINE void activate_bit(TreeState* tree, const LevelLayout& level, unsigned char* container,
                                 uint32_t index) {
  activate_bits(tree, level, container, index >> 6, 1ull << (index & 63));
}

COPPICE_INLINE Coord cell_coord_at(const LevelLayout& level, uint32_t x, uint32_t y, uint32_t z) {
  return {static_cast<int32_t>(x / level.span[0]), static_cast<int32_t>(y / level.span[1]),
          static_cast<int32_t>(z / level.span[2])};
}

// Remembers where the last activating walks of a thread ended, so that the next one to the same container
// need not walk. It is kept for a thread's turn at a range of items. Another thread may deactivate nodes
// on the way meanwhile, so the slots on the way are looked at each time: no cell is handed out twice in a
// launch, so a slot that still holds the cell has held it all along.
struct WalkMemo {
  static constexpr uint32_t kBindings = 4;  // the first ones of a kernel
  struct Last {
    uint32_t low[kMaxDims];  // coordinate of the container's first cell, as that of a coordinate's bits
    uint32_t row_cells;      // coordinates of the container on the last axis; 0: nothing is kept
    unsigned char* container;
    const uint32_t* slot[kMaxDepth];  // by level, of pointer nodes
    uint32_t cell[kMaxDepth];
  };
  Last last[kBindings];
  struct GatheredAppends* appends;  // null: appends are not gathered (lists.h)
  struct DelayedSums* sums;         // null: sums are not delayed (delayed_sums.h)
};

// Walks down and activates every node on the way; a dynamic node's list is there as soon as its
// ancestors are. `binding` is the handle's, for the status; `way`, where it is given, gets the
// slots and cells of pointer nodes.
COPPICE_INLINE CellRef find_or_activate(const LaunchBlock* block, const NodeLayout& node, uint32_t tree_slot,
                                        uint32_t binding, Coord c, WalkMemo::Last* way = nullptr) {
  TreeState* tree = tree_state(block, tree_slot);
  const auto [x, y, z] = from_origin(node, c);
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
    if (level.kind == NodeKind::kDynamic) break;
    unsigned char* cell;
    if (level.kind == NodeKind::kPointer) {
      uint32_t* const slot = reinterpret_cast<uint32_t*>(container) + index;
      const uint32_t id = activate_slot(block, tree_slot, level, slot, {cell_coord_at(level, x, y, z), 0});
      if (id == 0) return {tree->ambient, 0, false};
      if (makes_room()) warp_fetch_increment(&tree->allocators[level.allocator].activations);
      if (way != nullptr) way->slot[l] = slot, way->cell[l] = id;
      cell = tree->allocators[level.allocator].cells + id * level.cell_bytes;
    } else {
      if (level.kind == NodeKind::kBitmasked) activate_bit(tree, level, container, index);
      cell = container + level.cell_offset + index * level.cell_bytes;
    }
    if (last) break;
    container = cell + level.child_offset;
  }
  return {container, index, true};
}

// Returns whether walks to a node are remembered: only slots are on the way, the last right above the
// leaf.
COPPICE_INLINE bool remembers_walks_to(const NodeLayout& node) {
  if (node.depth < 2 || !coppice_has_private_tiles()) return false;
  COPPICE_UNROLL
  for (int l = 0; l + 1 < kMaxDepth; ++l) {
    if (l + 1 < static_cast<int>(node.depth) && node.level[l].kind == NodeKind::kBitmasked) return false;
  }
  return node.level[node.depth - 2].kind == NodeKind::kPointer &&
         node.level[node.depth - 1].kind != NodeKind::kPointer;
}

// Returns whether the cells that a walk went through are still there.
COPPICE_INLINE bool is_open(const NodeLayout& node, const WalkMemo::Last& last) {
  bool open = true;
  COPPICE_UNROLL
  for (int l = 0; l + 1 < kMaxDepth; ++l) {
    if (l + 1 < static_cast<int>(node.depth) && node.level[l].kind == NodeKind::kPointer)
      open = open && relaxed_load(last.slot[l]) == last.cell[l];
  }
  return open;
}

COPPICE_INLINE CellRef find_or_activate(const LaunchBlock* block, const NodeLayout& node, uint32_t tree_slot,
                                        uint32_t binding, Coord c, WalkMemo* memo) {
  if (memo == nullptr || binding >= WalkMemo::kBindings || !remembers_walks_to(node))
    return find_or_activate(block, node, tree_slot, binding, c);
  const LevelLayout &above = node.level[node.depth - 2], &leaf = node.level[node.depth - 1];
  WalkMemo::Last& last = memo->last[binding];
  // The box lies in the domain, so that a coordinate in it does.
  const uint32_t x = static_cast<uint32_t>(c.x) - last.low[0], y = static_cast<uint32_t>(c.y) - last.low[1],
                 z = static_cast<uint32_t>(c.z) - last.low[2];
  if (x < above.span[0] && y < above.span[1] && z < last.row_cells && is_open(node, last)) {
    const uint32_t index = cell_index(leaf, x, y, z);
    if (leaf.kind == NodeKind::kBitmasked)
      activate_bit(tree_state(block, tree_slot), leaf, last.container, index);
    return {last.container, index, true};
  }
  last.row_cells = 0;  // until the walk has come to its end
  const CellRef p = find_or_activate(block, node, tree_slot, binding, c, &last);
  if (!p.active) return p;
  const auto [at_x, at_y, at_z] = from_origin(node, c);
  last.low[0] = static_cast<uint32_t>(c.x) - at_x % above.span[0];
  last.low[1] = static_cast<uint32_t>(c.y) - at_y % above.span[1];
  last.low[2] = static_cast<uint32_t>(c.z) - at_z % above.span[2];
  last.row_cells = above.span[2], last.container = p.container;
  return p;
}

// ---- deactivation

template <class Word>
COPPICE_INLINE void zero_words(unsigned char* p, uint64_t n) {
  for (uint64_t i = 0; i < n; i += sizeof(Word)) relaxed_store(reinterpret_cast<Word*>(p + i), Word{0});
}
// Zeroes by atomic stores: a cell may be deactivated while one above it is, and then two threads zero the
// same bytes, one of which may still look at masks among them.
COPPICE_INLINE void zero_bytes(unsigned char* p, uint64_t n) {
  const uint64_t unaligned = reinterpret_cast<uint64_t>(p) | n;
  if (unaligned % 8 == 0)
    zero_words<uint64_t>(p, n);
  else if (unaligned % 4 == 0)
    zero_words<uint32_t>(p, n);
  else
    zero_words<unsigned char>(p, n);
}

// Empties a slot and queues its cell for collection. A second call does nothing: the exchange has one
// winner.
COPPICE_INLINE bool recycle_slot(AllocatorState* a, uint32_t* slot) {
  // A locked slot is being activated elsewhere; it counts as not active yet, and its lock must not be broken.
  const uint32_t cell = coppice_load_acquire_u32(slot);
  if (cell == 0 || cell == kLocked || coppice_compare_exchange_u32(slot, cell, 0) != cell) return false;
  a->recycled_list[warp_fetch_increment(&a->recycled_size)] = cell;
  return true;
}

// Empties a list by taking its first chunk from the head. Chunks behind it go with it when it is
// collected, also those that earlier appends still link. Where the first chunk is another one than at
// first, somebody else has cleared the list since this call began, and this clear comes right behind that
// one; where one is only being made, the list is empty. Relaxed: nothing is read from what is taken away.
COPPICE_INLINE void clear_list(TreeState* tree, const LevelLayout& level, ListHeader* list) {
  uint64_t now = relaxed_load(&list->head);
  const ListHead head = unpack_head(now);
  if (!has_chunk(head)) return;
  while (!compare_exchange(&list->head, &now, uint64_t{0})) {
    if (unpack_head(now).first != head.first) return;
  }
  AllocatorState* a = &tree->allocators[level.allocator];
  a->recycled_list[warp_fetch_increment(&a->recycled_size)] = head.first;
  set_flag(&tree->lists_changed);
}

// Says how what lies below a cell is cleared when the cell goes.
enum class Clearing {
  kSlots,  // cells and lists alone: bytes go with the cell's own
  kAll,    // values and masks, too; nothing else runs meanwhile
  // Values go, too. Other threads may be at what lies below, so its bits go one by one as if deactivated.
  kBesideOthers,
};

// Clears all that lies below a cell which goes, in one container of a node: cells are recycled, lists
// emptied, values and masks zeroed. Slots are never zeroed as bytes: others may be locking them. `by` says
// which threads share the slots.
inline void clear_container(TreeState* tree, const NodeLayout& node, unsigned char* container, Clearing what,
                            WorkShare by) {
  const LevelLayout& level = node.level[node.depth - 1];
  if (level.kind == NodeKind::kPointer) {
    AllocatorState* a = &tree->allocators[level.allocator];
    const uint64_t slots = num_cells_of(level);
    for (uint64_t s = by.lane; s < slots; s += by.count)
      recycle_slot(a, reinterpret_cast<uint32_t*>(container) + s);
  } else if (level.kind == NodeKind::kDynamic) {
    if (by.lane == 0) clear_list(tree, level, reinterpret_cast<ListHeader*>(container));
  } else if (what == Clearing::kBesideOthers && level.kind == NodeKind::kBitmasked) {
    for (uint64_t w = 0; w < mask_words(num_cells_of(level)); ++w) {
      const MaskWord m = mask_word(level, container, w);
      deactivate_cells(m, relaxed_load(m.active));
    }
  } else if (what != Clearing::kSlots) {
    // Only one thread does this: nobody shares the work.
    zero_bytes(container, level.cell_offset);
  }
}

// Returns container `i` of a node among those below one place: `at` is the first container on the way from
// there, of the node's level `first`.
COPPICE_INLINE unsigned char* container_below(const NodeLayout& node, uint32_t first, unsigned char* at,
                                              uint64_t i) {
  for (uint32_t l = node.depth - 1; l-- > first;) {
    const LevelLayout& level = node.level[l];
    at += level.cell_offset + i % num_cells_of(level) * level.cell_bytes + level.child_offset;
    i /= num_cells_of(level);
  }
  return at;
}

// Does the same to all that lies below `cell`, a cell of the node `depth` levels below the root.
inline void clear_below(TreeState* tree, const NodesBelow& nodes, uint32_t depth, unsigned char* cell,
                        Clearing what, WorkShare by = kAlone) {
  // Children go before their parents: what others activate below meanwhile is zeroed already, or its bit
  // goes, too.
  for (uint32_t n = nodes.count; n-- > 0;) {
    const NodeLayout& node = tree->layouts[tree->below[nodes.first + n]];
    uint64_t containers = 1;
    for (uint32_t l = depth; l + 1 < node.depth; ++l) containers *= num_cells_of(node.level[l]);
    unsigned char* const first = cell + node.level[depth - 1].child_offset;
    for (uint64_t i = 0; i < containers; ++i)
      clear_container(tree, node, container_below(node, depth, first, i), what, by);
  }
}

// Zeroes what a bitmasked node's cell holds: inactive cells hold zeros, so that no reader needs to test the
// bit.
inline void zero_cell(TreeState* tree, const NodeLayout& node, unsigned char* container, uint32_t index,
                      Clearing what) {
  for (uint32_t i = 0; i < node.num_arrays; ++i) {
    const ValueArray& array = node.arrays[i];
    zero_bytes(container + array.offset + index * static_cast<uint64_t>(array.stride), array.bytes);
  }
  const LevelLayout& last = node.level[node.depth - 1];
  unsigned char* cell = container + last.cell_offset + index * last.cell_bytes;
  if (node.below.count > 0)
    clear_below(tree, node.below, node.depth, cell, what);
  else
    zero_bytes(cell, last.cell_bytes);
}

// Makes a dirty cell an active one that holds zeros; whoever comes first does it, and the others wait.
inline void clean_cell(TreeState* tree, const LevelLayout& level, unsigned char* container, uint32_t index) {
  const MaskWord m = mask_word(level, container, index >> 6);
  const uint64_t bit = 1ull << (index & 63);
  for (uint32_t turn = 0; lock_cells(m, bit) == 0; ++turn) coppice_pause(turn);
  if ((relaxed_load(m.dirty) & bit) != 0) {
    zero_cell(tree, tree->layouts[level.node], container, index, Clearing::kBesideOthers);
    coppice_fetch_or_u64(m.active, bit);
    coppice_fence();
    coppice_fetch_and_u64(m.dirty, ~bit);
    set_flag(&tree->changed);
  }
  unlock_cells(m, bit);
}

COPPICE_INLINE void deactivate_bit(TreeState* tree, const LevelLayout& level, const CellRef& p) {
  if (!mask_bit(p.container, p.index)) return;
  if (!deactivate_cells(mask_word(level, p.container, p.index >> 6), 1ull << (p.index & 63))) return;
  set_flag(&tree->changed);
  set_flag(&tree->dirty);
}

// Deactivates one cell: a pointer slot is emptied and its cell queued for collection, a bit is cleared and
// its values are zeroed before they are used again, a list is emptied. Dense cells are always active.
COPPICE_INLINE void deactivate(const LaunchBlock* block, const NodeLayout& node, uint32_t tree_slot,
                               Coord c) {
  TreeState* tree = tree_state(block, tree_slot);
  const LevelLayout& last = node.level[node.depth - 1];
  if (makes_room()) {
    // A cell that goes may be activated anew, at most as often as it goes. A cell that is not there yet
    // counts, too: by the time of the launch this run has activated it.
    const bool has_cells = last.kind == NodeKind::kPointer || last.kind == NodeKind::kDynamic;
    if (has_cells) warp_fetch_increment(&tree->allocators[last.allocator].removals);
    return;
  }
  const CellRef p = find(node, tree, c);
  if (!p.active) return;
  if (last.kind == NodeKind::kPointer) {
    auto* slot = reinterpret_cast<uint32_t*>(p.container) + p.index;
    if (recycle_slot(&tree->allocators[last.allocator], slot)) set_flag(&tree->changed);
  } else if (last.kind == NodeKind::kBitmasked) {
    deactivate_bit(tree, last, p);
  } else if (last.kind == NodeKind::kDynamic) {
    clear_list(tree, last, list_at(p));
  }
}

}  // namespace coppice::device
