// Work that the threads of a thread block share; on a CPU one thread does all of it.
//
// Device-clean.
#pragma once
#include <stdint.h>

#include "core/device_macros.h"

namespace coppice::device {

// Says which thread takes part in shared work: thread `lane` of `count`.
struct WorkShare {
  uint32_t lane, count;
};
inline constexpr WorkShare kAlone{0, 1};

// Zeroes n bytes, in words of 4 where they are aligned; bytes in front of and behind these one by one.
COPPICE_INLINE void zero_bytes_by(WorkShare by, unsigned char* p, uint64_t n) {
  if (by.count == 1) {
    __builtin_memset(p, 0, n);
    return;
  }
  const uint64_t unaligned = -reinterpret_cast<uint64_t>(p) & 3;
  const uint64_t head = unaligned < n ? unaligned : n, words = (n - head) / 4, behind = head + words * 4;
  for (uint64_t i = by.lane; i < words; i += by.count) reinterpret_cast<uint32_t*>(p + head)[i] = 0;
  for (uint64_t i = by.lane; i < n - words * 4; i += by.count) p[i < head ? i : behind + i - head] = 0;
}

}  // namespace coppice::device
