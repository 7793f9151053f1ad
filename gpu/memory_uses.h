// Says which memory a launch's uses let its kernel reach by pointers, for COPPICE_DEBUG=checks: a table in
// device memory, whose address is the last word of the launch block's arguments. coppice_guard_memory()
// (gpu/device/memory_guard.h) reads it, sparse/memory_uses.h writes it.
//
//     MemoryUses | MemoryUse x num_uses | KnownBuffer x num_buffers
//
// Device-clean.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "gpu/launch_block.h"

namespace coppice {

// Describes a part of a buffer that lies in it again and again: a field's values in each of an allocator's
// cells. An access has to lie within one of them.
struct MemoryUse {
  uint64_t begin, end;   // addresses
  uint64_t period;       // bytes; all of [begin, end) where it lies there once
  uint64_t first, last;  // bytes of each period: [first, last)
  uint64_t effects;      // of namespace effect (gpu/effects.h): kReads, kStores, kChanges
};
static_assert(sizeof(MemoryUse) == 48);

// Describes a buffer of some device, of this launch's or not.
struct KnownBuffer {
  uint64_t begin, end;
  uint64_t is_tree;  // of a tree that the launch uses
};
static_assert(sizeof(KnownBuffer) == 24);

struct MemoryUses {
  uint32_t num_uses, num_buffers;
  // `outside` has the effects allowed on memory that is no buffer's (an argument leads there: the host's
  // own, on a CPU), `behind_memory` those allowed by pointers that lie in memory on buffers that are no
  // tree's.
  uint32_t outside, behind_memory;
};
static_assert(sizeof(MemoryUses) == 16);

// The launch block has the table's address here. Launches whose arguments need the place go unchecked.
inline constexpr int kMemoryUsesAt = kLaunchArgumentBytes - static_cast<int>(sizeof(void*));

// coppice_guard_memory() is told one of the effects, and perhaps these flags:
inline constexpr uint32_t kIsBehindMemory = 1u << 31;  // the pointer was read from memory
inline constexpr uint32_t kSaysNothing = 1u << 30;  // in a run that makes room: the launch itself will say it

}  // namespace coppice
