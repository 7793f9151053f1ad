// Philox4x32-10: random numbers as a pure function of a counter and a key.
//
// Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. No state, so the
// numbers of a cell are the same whichever thread asks, and in whatever order.
#pragma once

#include <array>
#include <cstdint>

namespace coppice {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;  // golden ratio, sqrt(3) - 1
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kMultiplier0 * counter[0], p1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// In [0, 1), with 24 bits: every value is a float, and 1 is never rounded to.
inline float uniform_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace coppice
