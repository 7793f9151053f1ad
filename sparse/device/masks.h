// The masks of a bitmasked node's containers, and how its cells come and go while
// other threads do the same to them.
//
// Device-clean. A cell has a bit in each of three masks: active; dirty, when it holds values of before its
// last deactivation; busy, a lock. At rest no cell is dirty or busy, and inactive cells hold zeros.
//
// A deactivation zeroes nothing, since a value that somebody sets meanwhile would be lost: locked, it
// makes the cell dirty, then clears the active bit. An activation sets that bit (without the lock) where
// it is clear, and looks at the dirty bit behind it. A thread that finds that set takes the lock and, if
// it still is, zeroes the cell, sets the active bit and clears the dirty one. Cells that stay dirty are
// zeroed at collection. So each cell's activations and deactivations have an order:
//   - Active bits are changed by read-modify-writes alone, so whoever sees one as it is after a deactivation knows that
//     the cell is dirty, unless it knows, too, that it has been zeroed since: nobody stores to it before the zeros.
//   - Who sees the bits as they were before a deactivation, and stores later, came before it: what it stores is zeroed
//     with the rest, or comes behind the zeros of an activation and is a value set in the active cell.
// A cell that was never deactivated costs two loads, and when it is inactive one atomic operation.
#pragma once
#include "sparse/device/lookup.h"

namespace coppice::device {

COPPICE_INLINE uint64_t num_cells_of(const LevelLayout& l) {
  return static_cast<uint64_t>(l.extent[0]) * l.extent[1] * l.extent[2];
}

// Holds the bits of 64 cells.
struct MaskWord {
  uint64_t *active, *dirty, *busy;
};
COPPICE_INLINE MaskWord mask_word(const LevelLayout& level, unsigned char* container, uint64_t word) {
  auto* const active = reinterpret_cast<uint64_t*>(container) + word;
  const uint64_t words = mask_words(num_cells_of(level));
  return {active, active + words, active + 2 * words};
}

// Locks those of the cells that nobody else has locked, and returns them.
COPPICE_INLINE uint64_t lock_cells(const MaskWord& m, uint64_t bits) {
  const uint64_t locked = bits & ~coppice_fetch_or_u64(m.busy, bits);
  coppice_fence();
  return locked;
}
COPPICE_INLINE void unlock_cells(const MaskWord& m, uint64_t bits) {
  coppice_fence();
  coppice_fetch_and_u64(m.busy, ~bits);
}

// Deactivates those of the cells that are active; true when there are any. Nobody waits for a lock while it
// holds one of the same word, so that two who want several cells never wait for each other.
inline bool deactivate_cells(const MaskWord& m, uint64_t bits) {
  uint64_t deactivated = 0;
  for (uint32_t turn = 0; bits != 0; ++turn) {
    const uint64_t locked = lock_cells(m, bits);
    bits &= ~locked;
    if (locked == 0) {
      coppice_pause(turn);
      continue;
    }
    const uint64_t going = relaxed_load(m.active) & locked;
    if (going != 0) {
      coppice_fetch_or_u64(m.dirty, going);
      coppice_fence();
      coppice_fetch_and_u64(m.active, ~going);
    }
    unlock_cells(m, locked);
    deactivated |= going;
  }
  return deactivated != 0;
}

}  // namespace coppice::device
