// Cells from an allocator, for any thread at any time: by the warp on a GPU, by the batch on a CPU.
//
// Device-clean. On a GPU all counters of a warp's winners are raised by one atomic for all of them. A
// thread of a CPU takes several cells at once and hands them out alone: a line that every activation
// wrote would go from core to core. It begins with one cell and takes twice as many each time, so that
// whoever wants few leaves no holes.
//
// A batch is a word in its worker's own lines (CellBatch). It changes by compare-and-swap only, since others
// may take from it: a thread that finds the allocator empty looks through all words before it fails, so the
// last cell is found whoever holds it. While a worker takes its next batch, its word says "busy" and that
// thread waits. It marks the word before it takes from the counters; who reads in them that nothing is left
// thus sees in every word the mark, or what came of it. No cell is taken twice in a launch, so a word does
// not come again. When the launch is over, all that is left goes back (give_back_cells in
// runtime_collection.kernels.cc): between launches the counters alone say what is free.
#pragma once
#include "sparse/device/lookup.h"

namespace coppice::device {

COPPICE_INLINE uint32_t fetch_add(uint32_t* counter, uint32_t n) { return coppice_fetch_add_u32(counter, n); }
COPPICE_INLINE uint32_t fetch_add(uint64_t* counter, uint32_t n) {
  return static_cast<uint32_t>(coppice_fetch_add_u64(counter, n));
}

// Raises a counter by one for each of the threads that come here together, with one atomic; each gets its
// own old value, or the lower half of it where the counter is wider.
template <class Counter>
inline uint32_t warp_fetch_increment(Counter* counter) {
  const uint32_t here = coppice_active_mask();
  const uint32_t same = coppice_match_any_u64(here, reinterpret_cast<uint64_t>(counter));
  const uint32_t leader = static_cast<uint32_t>(__builtin_ctz(same)), lane = coppice_warp_lane();
  uint32_t first = 0;
  if (lane == leader) first = fetch_add(counter, static_cast<uint32_t>(__builtin_popcount(same)));
  first = coppice_shuffle_u32(same, first, leader);
  return first + static_cast<uint32_t>(__builtin_popcount(same & ((1u << lane) - 1)));
}

// Sets a flag that many threads set: a line that every activation wrote would go from core to core.
COPPICE_INLINE void set_flag(uint32_t* flag) {
  if (relaxed_load(flag) == 0) relaxed_store(flag, 1u);
}

COPPICE_INLINE void give_back_bytes(TreeState* tree, uint64_t bytes) {
  if (tree->shared_limit != 0) coppice_fetch_add_u64(&tree->fresh_bytes, ~bytes + 1);
}

// Takes the bytes of a cell from what the tree's allocators may have together; false when that is used up.
COPPICE_INLINE bool take_bytes(TreeState* tree, uint64_t bytes) {
  if (tree->shared_limit == 0) return true;
  // No bytes are taken that are not there, not even for a moment: a node whose cells fit would be refused
  // for it.
  for (uint64_t now = relaxed_load(&tree->fresh_bytes); now + bytes <= tree->shared_limit;)
    if (compare_exchange(&tree->fresh_bytes, &now, now + bytes)) return true;
  return false;
}

inline uint32_t allocate_by_warp(TreeState* tree, AllocatorState* a) {
  if (relaxed_load(&a->free_used) < a->free_size) {
    const uint32_t taken = warp_fetch_increment(&a->free_used);
    if (taken < a->free_size) return a->free_list[taken];
  }
  // It is counted down again on failure, so that the count cannot wrap however long a launch keeps asking.
  if (relaxed_load(&a->num_cells) < a->capacity && take_bytes(tree, a->cell_bytes)) {
    const uint32_t fresh = warp_fetch_increment(&a->num_cells);
    if (fresh < a->capacity) return fresh;
    coppice_fetch_add_u32(&a->num_cells, ~0u);
    give_back_bytes(tree, a->cell_bytes);
  }
  return 0;
}

// ---- by the batch

// Raises a counter by `most`, or by what is left to `end`. Returns by how much, with its old value in
// `first`.
inline uint32_t take_up_to(uint32_t* counter, uint32_t end, uint32_t most, uint32_t* first) {
  for (uint32_t now = coppice_load_acquire_u32(counter); now < end;) {
    const uint32_t n = end - now < most ? end - now : most;
    const uint32_t found = coppice_compare_exchange_u32(counter, now, now + n);
    if (found == now) {
      *first = now;
      return n;
    }
    now = found;
  }
  return 0;
}

// Returns the next batch of `most` cells at most, from the free list or of fresh ones; it is empty where
// there is none.
inline CellBatch take_batch(TreeState* tree, AllocatorState* a, uint32_t most, bool is_recycled) {
  CellBatch b{0, 0, 0, is_recycled, false};
  if (is_recycled) {
    b.left = take_up_to(&a->free_used, a->free_size, most, &b.at);
    return b;
  }
  const uint32_t now = coppice_load_acquire_u32(&a->num_cells);
  if (now >= a->capacity) return b;
  // A worker that leaves cells unused makes the others take more than there ever were at once: so it takes a
  // part in 64 at most, if any.
  const uint32_t part = now / 64 + 1;
  if (part < most) most = part;
  // Where allocators share a limit, bytes are counted as cells are used: nobody could take back what another
  // holds.
  if (tree->shared_limit != 0) most = 1;
  if (!take_bytes(tree, a->cell_bytes)) return b;
  b.left = take_up_to(&a->num_cells, a->capacity, most, &b.at);
  if (b.left == 0) give_back_bytes(tree, a->cell_bytes);
  return b;
}

COPPICE_INLINE uint32_t first_of(const AllocatorState* a, CellBatch b) {
  return b.is_recycled ? a->free_list[b.at] : b.at;
}

// Takes a cell of the batch in a worker's word. Returns 0 when there is none, or none of the free list
// where only those are wanted.
COPPICE_INLINE uint32_t take_held(const AllocatorState* a, uint64_t* word, bool only_recycled = false) {
  for (uint32_t turn = 0;;) {
    uint64_t now = relaxed_load(word);
    CellBatch b = unpack_batch(now);
    if (b.is_busy) {
      coppice_pause(turn++);
      continue;
    }
    if (b.left == 0 || (only_recycled && !b.is_recycled)) return 0;
    const uint32_t cell = first_of(a, b);
    ++b.at, --b.left;
    if (compare_exchange(word, &now, pack(b))) return cell;
  }
}

// A tree of another device has no workers, also where its kernels run as a CPU's (on a driver that only
// records).
COPPICE_INLINE bool has_workers(const TreeState* tree) {
  return coppice_has_workers() && tree->num_workers != 0;
}
COPPICE_INLINE WorkerCells* own_lines(const TreeState* tree) {
  return tree->workers + coppice_worker() % tree->num_workers;
}
// Counts a write of this thread to a line that all share.
COPPICE_INLINE void note_shared_write(WorkerCells* own) {
  relaxed_store(&own->shared_writes, relaxed_load(&own->shared_writes) + 1);
}

inline uint32_t take_from_others(const TreeState* tree, const AllocatorState* a, bool only_recycled) {
  for (uint64_t w = 0; w < tree->num_workers; ++w) {
    if (const uint32_t cell = take_held(a, &tree->workers[w].batch[a - tree->allocators], only_recycled))
      return cell;
  }
  return 0;
}

// Returns the first cell of the worker's next batch, or of the one that it has. 0: there is none of that
// kind.
inline uint32_t refill(TreeState* tree, AllocatorState* a, WorkerCells* own, bool is_recycled) {
  uint64_t* const word = &own->batch[a - tree->allocators];
  for (;;) {
    if (const uint32_t cell = take_held(a, word)) return cell;
    uint64_t now = relaxed_load(word);
    CellBatch empty = unpack_batch(now);
    if (empty.left != 0 || empty.is_busy) continue;  // threads may have one word: a number is a mere hint
    empty.is_busy = true;
    if (!compare_exchange(word, &now, pack(empty))) continue;
    const uint64_t fit = kBatchBytes / a->cell_bytes;
    const uint32_t most = fit > 0 ? static_cast<uint32_t>(fit) : 1, size = 1u << empty.log2_next;
    CellBatch b = take_batch(tree, a, size < most ? size : most, is_recycled);
    note_shared_write(own);
    if (b.left == 0) {
      relaxed_store(word, now);
      return 0;
    }
    set_flag(&tree->holds_cells);
    const uint32_t cell = first_of(a, b);
    ++b.at, --b.left;
    b.log2_next = empty.log2_next < kMostLog2Batch ? empty.log2_next + 1 : kMostLog2Batch;
    relaxed_store(word, pack(b));
    return cell;
  }
}

// A worker does not look at others' words while its own is busy: two that did would wait for each other.
inline uint32_t allocate_by_batch(TreeState* tree, AllocatorState* a) {
  // A cell that was refused once is refused for the rest of the launch.
  if (relaxed_load(&a->shortage) != 0) return 0;
  WorkerCells* const own = own_lines(tree);
  if (const uint32_t cell = take_held(a, &own->batch[a - tree->allocators])) return cell;
  if (a->free_size > 0) {
    if (coppice_load_acquire_u32(&a->free_used) < a->free_size) {
      if (const uint32_t cell = refill(tree, a, own, true)) return cell;
    }
    // A fresh cell is taken only where no other is free, or memory would grow from launch to launch.
    if (const uint32_t cell = take_from_others(tree, a, true)) return cell;
  }
  if (const uint32_t cell = refill(tree, a, own, false)) return cell;
  return take_from_others(tree, a, false);
}

// Returns a zeroed cell, or 0 when the allocator has no more (then the shortage is counted).
inline uint32_t allocate_cell(TreeState* tree, AllocatorState* a) {
  const uint32_t cell = has_workers(tree) ? allocate_by_batch(tree, a) : allocate_by_warp(tree, a);
  if (cell == 0) warp_fetch_increment(&a->shortage);
  return cell;
}

}  // namespace coppice::device
