// The check of an access by pointer, which the specializer puts before each of those that a kernel's author
// wrote (gpu/jit/guard_memory.cc): part of every target's device intrinsics.
//
// Device-clean. Included once by each gpu/device/*.device.cc and by nothing else: these are definitions.
#pragma once
#include "gpu/device_intrinsics.h"
#include "gpu/effects.h"
#include "gpu/memory_uses.h"

namespace coppice {

inline bool is_used_memory(const MemoryUses* uses, uint64_t at, uint64_t bytes, uint32_t effects) {
  const auto* use = reinterpret_cast<const MemoryUse*>(uses + 1);
  for (const MemoryUse* const end = use + uses->num_uses; use != end; ++use) {
    if ((use->effects & effects) == 0 || at < use->begin || at >= use->end) continue;
    const uint64_t in_period = (at - use->begin) % use->period;
    if (in_period >= use->first && in_period + bytes <= use->last) return true;
  }
  return false;
}

// Returns whether the uses allow `what` on memory of no buffer, or behind a pointer that memory holds.
inline bool is_beside_uses(const MemoryUses* uses, uint64_t at, uint64_t bytes, uint32_t what) {
  const auto* const first =
      reinterpret_cast<const KnownBuffer*>(reinterpret_cast<const MemoryUse*>(uses + 1) + uses->num_uses);
  const bool is_behind = (what & kIsBehindMemory) != 0;
  for (uint32_t k = 0; k < uses->num_buffers; ++k) {
    const KnownBuffer& buffer = first[k];
    if (at >= buffer.end || at + bytes <= buffer.begin) continue;
    return is_behind && buffer.is_tree == 0 && (uses->behind_memory & what) != 0;
  }
  return ((uses->outside | (is_behind ? uses->behind_memory : 0)) & what) != 0;
}

// Tells whether it is one of the kernel's own variables, which a pointer from memory may lead to, or fast
// memory of a CPU, which is one of the driver's. On a GPU these are in local memory; else they are on the
// stack around here, as far as variables may reach (kMaxStackBytes in gpu/jit/kernel_rules.h), tiles, and
// what the checks add. This function may have a frame of its own, or share the kernel's.
inline bool is_variable(uint64_t at) {
#ifdef __NVPTX__
  return __nvvm_isspacep_local(reinterpret_cast<const void*>(at));
#else
  constexpr uint64_t kReach = 256u << 10;
  return at + kReach - reinterpret_cast<uint64_t>(__builtin_frame_address(0)) < 2 * kReach;
#endif
}

}  // namespace coppice

extern "C" {
// Returns `p`, or a place of zeros that may be overwritten where the launch's uses do not say that it does
// `what` there: then a status says so, with the text of the place in the kernel file.
void* coppice_guard_memory(const coppice::LaunchBlock* block, void* p, uint64_t bytes, uint32_t what,
                           const char* place, uint32_t place_length) {
  using namespace coppice;
  const MemoryUses* uses;
  __builtin_memcpy(&uses, block->arguments + kMemoryUsesAt, sizeof uses);
  const auto at = reinterpret_cast<uint64_t>(p);
  // A load may be part of a change, and a store too.
  const uint32_t effects = what & effect::kStores ? effect::kStores | effect::kChanges : what;
  const auto fast = reinterpret_cast<uint64_t>(coppice_shared_memory());
  if (bytes == 0 || (fast != 0 && at >= fast && at - fast < (48u << 10)) || is_variable(at)) return p;
  if (is_used_memory(uses, at, bytes, effects) || is_beside_uses(uses, at, bytes, what | effects)) return p;
  DeviceContext* const context = block->context;
  if ((what & kSaysNothing) == 0 &&
      coppice_compare_exchange_u32(&context->status, 0,
                                   status_word(DeviceStatus::kOutOfMemoryUses, launch_number(*block))) == 0) {
    context->status_tree = what & ~kIsBehindMemory;
    context->status_detail = place_length;
    context->status_coord[0] = static_cast<int64_t>(at);
    context->status_coord[1] = static_cast<int64_t>(bytes);
    for (uint32_t k = 0; k < place_length; ++k) context->assertion[k] = static_cast<unsigned char>(place[k]);
  }
  if (bytes <= kSinkBytes) __builtin_memset(context->sink, 0, bytes);
  return context->sink;
}
}
