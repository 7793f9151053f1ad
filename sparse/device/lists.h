// Appending to and writing the lists of dynamic nodes.
//
// Device-clean. An append is one atomic add (for all threads of a warp that append to the same list),
// a walk from the list's latest chunk, and where that is full the activation of the next one, whose
// slot is in the chunk before it.
//
// Appends and clears of one list in one launch. A list's head is one word: its first chunk, and how many
// elements were asked for. The first chunk is the list's generation: a clear takes it away by a
// compare-and-swap, no cell is handed out twice in a launch, so an append learns with its index which list
// the index counts in, for ever. Everything else that appends share (the chain, LatestChunk) is reached
// through that chunk, so an append that a clear overtakes goes on in the old chain, alone with others of its
// kind, and all of that is found when the chain is collected. The order in which heads change is the serial
// order: an append is where its add finds a first chunk (the first append where it puts one there), a clear
// where its swap succeeds or the head was found empty, a read where it loads the head.
//
// The head's accesses are relaxed. What a thread does with a first chunk that it learned of is to
// store elements, which nobody orders, and to load words that were zero before the launch: zeros say
// what is true of them then, "no chunk behind this one". Links are ordered: slots by activate_slot,
// LatestChunk as find_or_link_chunk says. The file is long because that protocol is one, and is read as one.
#pragma once
#include "sparse/device/checks.h"

namespace coppice::device {

inline constexpr uint32_t kNoIndex = ~0u;  // what a refused append returns

// Raises a head's count by one for each of the threads that come here together; each gets the head as it
// found it.
inline ListHead warp_ask_for_element(ListHeader* list) {
  const uint32_t here = coppice_active_mask();
  const uint32_t same = coppice_match_any_u64(here, reinterpret_cast<uint64_t>(list));
  const uint32_t leader = static_cast<uint32_t>(__builtin_ctz(same)), lane = coppice_warp_lane();
  uint64_t found = 0;
  if (lane == leader)
    found = coppice_fetch_add_u64(&list->head, static_cast<uint32_t>(__builtin_popcount(same)));
  const uint32_t asked = coppice_shuffle_u32(same, static_cast<uint32_t>(found), leader),
                 first = coppice_shuffle_u32(same, static_cast<uint32_t>(found >> 32), leader);
  // The leader did the add: without this barrier, one of the others could load the head as it was before
  // its own append.
  coppice_warp_barrier(same);
  return {asked + static_cast<uint32_t>(__builtin_popcount(same & ((1u << lane) - 1))), first};
}

// This is a list's first chunk, made where there is none, with `asked` elements asked for. Elements asked
// for without a chunk are forgotten: a thread that did so asks again. So the count cannot add up, however
// long a launch keeps asking.
struct FirstChunk {
  uint32_t cell;  // 0: out of cells
  bool is_new;    // by this call
};
[[gnu::noinline]] inline FirstChunk find_or_make_first_chunk(const LaunchBlock* block, uint32_t tree_slot,
                                                             const LevelLayout& level, ListHeader* list,
                                                             Coord list_coord, uint32_t asked) {
  TreeState* tree = tree_state(block, tree_slot);
  for (uint32_t turn = 0;; ++turn) {
    uint64_t now = relaxed_load(&list->head);
    const ListHead head = unpack_head(now);
    if (has_chunk(head)) return {head.first, false};
    if (head.first == kAmbientCell) {
      const uint32_t here = coppice_active_mask();
      const uint32_t same = coppice_match_any_u64(here, reinterpret_cast<uint64_t>(list));
      const bool is_elected = coppice_warp_lane() == static_cast<uint32_t>(__builtin_ctz(same));
      if (is_elected && compare_exchange(&list->head, &now, pack(ListHead{0, kLocked}))) {
        AllocatorState* a = &tree->allocators[level.allocator];
        const uint32_t cell = allocate_cell(tree, a);
        if (cell == 0)
          raise_status(block, DeviceStatus::kOutOfCells, tree_slot, level.allocator, list_coord);
        else
          write_header(a, cell, reinterpret_cast<uint32_t*>(&list->head) + 1, {list_coord, 0});
        // Nobody else changes the upper half of a locked head.
        relaxed_store(&list->head, pack(ListHead{cell == 0 ? 0 : asked, cell}));
        return {cell, cell != 0};
      }
      // The same holds as in activate_slot(): nobody has locked the list, and a thread that does is
      // refused.
      if (has_refused(tree->allocators[level.allocator]) && unpack_head(now).first == kAmbientCell &&
          compare_exchange(&list->head, &now, uint64_t{0}))
        return {0, false};
    }
    coppice_pause(turn);
  }
}

// Takes the count of the list that begins with `first` back to `most` where it is above. A swap, so that it
// changes neither a list that came after nor, by a carry, the first chunk.
COPPICE_INLINE void limit_list(ListHeader* list, uint32_t first, uint64_t most) {
  uint64_t now = relaxed_load(&list->head);
  while (unpack_head(now).first == first && unpack_head(now).asked > most &&
         !compare_exchange(&list->head, &now, pack(ListHead{static_cast<uint32_t>(most), first}))) {
  }
}

// This is the chunk that holds element `index` of the list that begins with `first`, with all before it
// linked; or why there is none: the list was cleared meanwhile, or the allocator is out of cells. In the
// latter case the list ends where its chunks do: an allocator that refused a cell refuses all others of
// the launch, so nothing comes behind.
struct LinkedChunk {
  unsigned char* chunk;  // null: none
  bool is_cleared;
};
// This is a function of its own for chunks that are not the latest: most appends are to the latest, and
// would save registers for this.
[[gnu::noinline]] inline LinkedChunk walk_or_link_chunk(const LaunchBlock* block, uint32_t tree_slot,
                                                        const LevelLayout& level, ListHeader* list,
                                                        uint32_t first, uint32_t wanted, Coord list_coord) {
  const TreeState* tree = tree_state(block, tree_slot);
  const LatestChunk latest = latest_chunk(level, tree, first);
  const bool is_before = latest.linked - 1 > wanted;
  uint32_t at = is_before ? 0 : latest.linked - 1, cell = is_before ? first : latest.cell;
  while (at < wanted) {
    uint32_t* const slot = next_chunk(level, tree, cell);
    cell = coppice_load_acquire_u32(slot);
    if (cell == 0 || cell == kLocked) {
      if (unpack_head(relaxed_load(&list->head)).first != first) return {nullptr, true};
      cell = activate_slot(block, tree_slot, level, slot, {list_coord, at + 1});
      if (cell == 0) {
        limit_list(list, first, uint64_t{at + 1} * level.chunk_cells);
        return {nullptr, false};
      }
    }
    if (++at < latest.linked) continue;
    // This is a release: a thread that learns of this chunk learns of the slots of all before it, which
    // this thread has read or knows by its own acquire. Every thread that comes beyond the latest chunk
    // says so, not only the one that linked it, which may be slow.
    coppice_fence();
    auto* header = reinterpret_cast<ChunkHeader*>(chunk_at(level, tree, first));
    coppice_fetch_max_u64(&header->latest, pack(LatestChunk{cell, at + 1}));
  }
  return {chunk_at(level, tree, cell), false};
}
COPPICE_INLINE LinkedChunk find_or_link_chunk(const LaunchBlock* block, uint32_t tree_slot,
                                              const LevelLayout& level, ListHeader* list, uint32_t first,
                                              uint32_t index, Coord list_coord) {
  const TreeState* tree = tree_state(block, tree_slot);
  const uint32_t wanted = index / level.chunk_cells;
  if (wanted == 0) return {chunk_at(level, tree, first), false};
  const LatestChunk latest = latest_chunk(level, tree, first);
  if (latest.linked - 1 == wanted) return {chunk_at(level, tree, latest.cell), false};
  return walk_or_link_chunk(block, tree_slot, level, list, first, wanted, list_coord);
}

template <class T>
COPPICE_INLINE T* element_at(const LevelLayout& level, const FieldBinding& f, unsigned char* chunk,
                             uint32_t index) {
  return reinterpret_cast<T*>(chunk + f.offset + index % level.chunk_cells * static_cast<uint64_t>(f.stride));
}

// Says where a list is, once all above it is activated.
struct ListPlace {
  ListHeader* list;  // null: outside the domain, or out of cells
  TreeState* tree;
  Coord coord;  // in lists, from the origin: what chunks keep
};
COPPICE_INLINE ListPlace open_list(const LaunchBlock* block, uint32_t binding, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const CellRef p = find_or_activate(block, node, f.tree, binding, c);
  const Offset at = from_origin(node, c);
  return {p.active ? list_at(p) : nullptr,
          tree_state(block, f.tree),
          {static_cast<int32_t>(at.x), static_cast<int32_t>(at.y), static_cast<int32_t>(at.z)}};
}

COPPICE_INLINE void raise_list_full(const LaunchBlock* block, uint32_t binding, int64_t index, Coord c) {
  if (makes_room()) return;  // the launch says so, and counts it once
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  coppice_fetch_add_u64(&block->context->missed_writes, 1);
  raise_status(block, DeviceStatus::kListFull, f.tree, binding,
               StatusPlace{{index, node.level[node.depth - 1].max_length, 0}, c});
}

// Reports that `n` elements from `index` on are beyond a list's end. (At any time, at most what each
// thread appends at once is asked for in vain.)
[[gnu::noinline]] inline void refuse_elements(const LaunchBlock* block, uint32_t binding, ListHeader* list,
                                              uint32_t first, uint32_t index, uint32_t n, Coord c) {
  const NodeLayout& node = coppice_nodes[coppice_fields[binding].node];
  limit_list(list, first, node.level[node.depth - 1].max_length);
  for (uint32_t i = 0; i < n; ++i) raise_list_full(block, binding, index + i, c);
}

// Links the chunk that an append would need, in a run that makes room. Returns the index that it would
// have been given, were the order of the threads the same.
inline uint32_t want_element(const LaunchBlock* block, uint32_t tree_slot, const LevelLayout& level,
                             const ListPlace& p) {
  const uint32_t first = find_or_make_first_chunk(block, tree_slot, level, p.list, p.coord, 0).cell;
  if (first == 0) return kNoIndex;
  warp_fetch_increment(&p.tree->allocators[level.allocator].appends);
  auto* header = reinterpret_cast<ChunkHeader*>(chunk_at(level, p.tree, first));
  // Nothing is appended or cleared meanwhile, so that the list's length stays.
  const uint32_t index =
      unpack_head(relaxed_load(&p.list->head)).asked + warp_fetch_increment(&header->wanted);
  if (index >= level.max_length) return kNoIndex;
  find_or_link_chunk(block, tree_slot, level, p.list, first, index, p.coord);
  return index;
}

// Appends `n` values behind each other to the list at `c`; returns the first one's index, or kNoIndex when
// the list or the memory has no room for it. Threads of a warp come with one value each. `own` are the
// thread's lines of the list's tree, where it has workers.
template <class T>
COPPICE_INLINE uint32_t append_run(const LaunchBlock* block, uint32_t binding, Coord c, const T* values,
                                   uint32_t n, WorkerCells* own) {
  const FieldBinding& f = coppice_fields[binding];
  const LevelLayout& level = coppice_nodes[f.node].level[coppice_nodes[f.node].depth - 1];
  const ListPlace p = open_list(block, binding, c);
  if (p.list == nullptr) return kNoIndex;
  if (makes_room()) return want_element(block, f.tree, level, p);
  ListHead got;
  for (;;) {
    if (has_workers(p.tree)) note_shared_write(own);
    got = n == 1 ? warp_ask_for_element(p.list) : unpack_head(coppice_fetch_add_u64(&p.list->head, n));
    if (has_chunk(got)) break;
    const FirstChunk made = find_or_make_first_chunk(block, f.tree, level, p.list, p.coord, n);
    if (made.cell == 0) return kNoIndex;
    if (!made.is_new) continue;
    got = {0, made.cell};
    break;
  }
  set_flag(&p.tree->lists_changed);
  unsigned char* chunk = nullptr;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t index = got.asked + i;
    if (index >= level.max_length) {
      refuse_elements(block, binding, p.list, got.first, index, n - i, c);
      return i == 0 ? kNoIndex : got.asked;
    }
    if (chunk == nullptr || index % level.chunk_cells == 0) {
      const LinkedChunk link = find_or_link_chunk(block, f.tree, level, p.list, got.first, index, p.coord);
      if (link.is_cleared) break;  // with the list, after it was appended
      if (link.chunk == nullptr) return i == 0 ? kNoIndex : got.asked;
      chunk = link.chunk;
    }
    store_shared(element_at<T>(level, f, chunk, index), values[i]);  // others may read what is counted
  }
  return got.asked;
}

// A thread of a CPU gathers here what it is about to append to one list, in a turn at a range of items: a
// list's head, which every append would write to, goes from core to core once for all of them. It does so
// only where nobody can tell: the kernel does not use their indices, and neither looks at lists nor takes
// anything away (`kGathers`). They keep their order.
struct GatheredAppends {
  static constexpr uint32_t kBytes = 1024, kMost = 64, kFewest = 16;
  Coord list{0, 0, 0};
  uint32_t count = 0;
  WorkerCells* own = nullptr;  // of the list's tree
  alignas(16) unsigned char values[kBytes];
};
// Returns how many values of a type are gathered; 0 where they would be too few to be worth it.
template <class T>
constexpr uint32_t most_gathered() {
  constexpr uint32_t n = GatheredAppends::kBytes / sizeof(T);
  if (alignof(T) > 16 || n < GatheredAppends::kFewest) return 0;
  return n < GatheredAppends::kMost ? n : GatheredAppends::kMost;
}
template <class T>
COPPICE_INLINE bool gathers(uint32_t binding) {
  return (coppice_fields[binding].access & kGathers) != 0 && coppice_has_workers() && most_gathered<T>() > 0;
}

template <class T>
[[gnu::noinline]] inline void append_many(const LaunchBlock* block, uint32_t binding,
                                          const GatheredAppends* gathered) {
  append_run(block, binding, gathered->list, reinterpret_cast<const T*>(gathered->values), gathered->count,
             gathered->own);
}
// Appends what has been gathered: often one value, where a kernel appends to many lists.
template <class T>
inline void append_gathered(const LaunchBlock* block, uint32_t binding, GatheredAppends* gathered) {
  if (gathered->count == 0) return;
  const TreeState* tree = tree_state(block, coppice_fields[binding].tree);
  if (gathered->own == nullptr && has_workers(tree)) gathered->own = own_lines(tree);
  if (gathered->count == 1)
    append_run(block, binding, gathered->list, reinterpret_cast<const T*>(gathered->values), 1,
               gathered->own);
  else
    append_many<T>(block, binding, gathered);
  gathered->count = 0;
}

// Appends a value to the list at `c`; returns its index, or kNoIndex when the list or the memory
// is full, or nobody asks for it.
template <class T>
COPPICE_INLINE uint32_t append(const LaunchBlock* block, uint32_t binding, Coord c, const T& value,
                               GatheredAppends* gathered) {
  if (!gathers<T>(binding) || gathered == nullptr) {
    const TreeState* tree = tree_state(block, coppice_fields[binding].tree);
    return append_run(block, binding, c, &value, 1, has_workers(tree) ? own_lines(tree) : nullptr);
  }
  const Coord last = gathered->list;
  if (gathered->count == most_gathered<T>() || c.x != last.x || c.y != last.y || c.z != last.z) {
    append_gathered<T>(block, binding, gathered);
    gathered->list = c;
  }
  __builtin_memcpy(gathered->values + gathered->count++ * sizeof(T), &value, sizeof(T));
  return kNoIndex;
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
  const uint32_t first = find_or_make_first_chunk(block, f.tree, level, p.list, p.coord, 0).cell;
  if (first == 0) return;
  const auto at = static_cast<uint32_t>(index);
  const LinkedChunk link = find_or_link_chunk(block, f.tree, level, p.list, first, at, p.coord);
  if (makes_room())
    coppice_fetch_add_u64(&p.tree->allocators[level.allocator].appends, at + uint64_t{level.chunk_cells});
  if (link.chunk == nullptr || makes_room()) return;
  store_shared(element_at<T>(level, f, link.chunk, at), value);
  set_flag(&p.tree->lists_changed);
  uint64_t now = relaxed_load(&p.list->head);
  while (unpack_head(now).first == first && unpack_head(now).asked <= at &&
         !compare_exchange(&p.list->head, &now, pack(ListHead{at + 1, first}))) {
  }
}

// Returns the length of the list at `c`, 0 where there is none.
COPPICE_INLINE uint32_t length_at(const LaunchBlock* block, uint32_t binding, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const TreeState* tree = tree_state(block, f.tree);
  const CellRef p = find(node, tree, c);
  return p.active ? list_length(node.level[node.depth - 1], tree, list_at(p)) : 0;
}

// Returns element `index`; zero where the list has none.
template <class T>
COPPICE_INLINE T element(const LaunchBlock* block, uint32_t binding, Coord c, int64_t index) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const LevelLayout& level = node.level[node.depth - 1];
  const TreeState* tree = tree_state(block, f.tree);
  const CellRef p = find(node, tree, c);
  const ListView list = p.active ? view_list(level, tree, list_at(p)) : ListView{kAmbientCell, 0};
  if (index < 0 || index >= list.length) {
    if (debug_checks())
      raise_status(block, DeviceStatus::kOutOfList, f.tree, binding, StatusPlace{{index, list.length, 0}, c});
    return T{};
  }
  const auto at = static_cast<uint32_t>(index);
  return load_shared(element_at<T>(level, f, find_chunk(level, tree, list.first, at), at));
}

}  // namespace coppice::device
