#include "gpu/simt/unit.h"

// A unit may hold other objects' bytes and bytes of none, which sanitizers would report.
#if defined(__GNUC__)
#define COPPICE_UNCHECKED __attribute__((noinline, no_sanitize("address", "thread", "undefined")))
#endif

namespace coppice::simt {
namespace {

using Whole = volatile uint64_t __attribute__((may_alias));
using Half = volatile uint32_t __attribute__((may_alias));
using Byte = volatile unsigned char;

}  // namespace

COPPICE_UNCHECKED uint64_t memory_at(uintptr_t unit) { return *reinterpret_cast<const Whole*>(unit); }

COPPICE_UNCHECKED void write_memory(uintptr_t unit, uint64_t value, uint8_t bytes) {
  if (bytes == 0xff) {
    *reinterpret_cast<Whole*>(unit) = value;
    return;
  }
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t of_half = bytes >> 4 * half & 15u;
    if (of_half == 15) {
      reinterpret_cast<Half*>(unit)[half] = static_cast<uint32_t>(value >> 32 * half);
      continue;
    }
    for (uint32_t i = 4 * half; i < 4 * half + 4; ++i) {
      if ((bytes >> i & 1) != 0)
        reinterpret_cast<Byte*>(unit)[i] = static_cast<unsigned char>(value >> 8 * i);
    }
  }
}

}  // namespace coppice::simt
