// The 8 aligned bytes that the emulated GPU's memory is kept by (weak_memory.h), as memory has them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/simt/history.h"

namespace coppice::simt {

// Returns `count` bytes of a unit from `first` on, a bit each.
inline uint8_t bits(size_t first, size_t count) { return static_cast<uint8_t>(((1u << count) - 1) << first); }
// Returns the same, a byte each.
inline uint64_t spread(uint8_t bytes) {
  const uint64_t low = (bytes & 0x7fu) * 0x02040810204081u & 0x0101010101010101u;
  return (low | uint64_t{bytes & 0x80u} << 49) * 0xff;
}

uint64_t memory_at(uintptr_t unit);
// Writes whole words as such: other launches may look at them meanwhile.
void write_memory(uintptr_t unit, uint64_t value, uint8_t bytes);

// Calls part(unit, first byte in it, bytes, offset from the beginning) for what lies in each unit.
template <class Part>
void for_each_unit(uintptr_t address, size_t bytes, Part&& part) {
  for (size_t done = 0; done < bytes;) {
    const size_t first = (address + done) % kUnitBytes, n = std::min(bytes - done, kUnitBytes - first);
    part(address + done - first, first, n, done);
    done += n;
  }
}

}  // namespace coppice::simt
