// Holds what one of the runtime's kernels counts and leaves in device memory for the next one, or for the
// host to read: there is one of these for each tree. Every part has cache lines of its own.
#pragma once
#include <cstdint>

#include "loop_lists.kernels.h"
#include "runtime_append.kernels.h"

namespace coppice {

struct RuntimeCounts {
  static constexpr size_t kMostKeySteps = 32;

  alignas(64) uint64_t outside;            // coordinates to activate that are outside the domain
  alignas(64) uint64_t collected[2];       // cells to zero, and entries of a free list to move
  alignas(64) CoppiceListCounts list;      // of the loop's list that is being made
  alignas(64) uint64_t recycled;           // batches, cells or lists of the pass that is next
  alignas(64) uint64_t dirty;              // items of the pass over masks that is next
  alignas(64) CoppiceAppendTotals append;  // of a bulk append
  alignas(64) int64_t too_long[5];         // its list that would be: coordinate, length, how many more
  alignas(64) CoppiceKeyStep key_steps[kMostKeySteps];
};

}  // namespace coppice
