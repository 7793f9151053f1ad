// Work that the threads of a thread block share; on a CPU one thread does all of it.
//
// Device-clean.
#pragma once
#include <stdint.h>

#include "gpu/device_intrinsics.h"

namespace coppice::device {

// Says which thread takes part in shared work: thread `lane` of `count`.
struct WorkShare {
  uint32_t lane, count;
};
inline constexpr WorkShare kAlone{0, 1};

// Calls body(i) for i in [0, n), shared among the threads of a thread block. Where n is a constant so is the
// number of rounds, and the optimiser unrolls them: the loads of several come before the first store. The
// body stands here once, for it may be a whole kernel.
template <class Body>
COPPICE_INLINE void share_out(uint32_t n, Body&& body) {
  const uint32_t lanes = coppice_lane_count(), rounds = n / lanes + (n % lanes != 0 ? 1 : 0);
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t i = round * lanes + coppice_lane();
    if (n % lanes == 0 || round + 1 < rounds || i < n) body(i);
  }
}

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
