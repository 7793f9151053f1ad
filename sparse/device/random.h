// Counter-based random numbers: a draw is a hash of seed and counters, so it is the same on every device and thread.
//
// Device-clean.
#pragma once
#include <cstdint>

namespace coppice {

// 32 random bits for (seed, a, b); two rounds of a 64-bit multiply-xorshift mix.
inline uint32_t hash_u32(uint64_t seed, uint64_t a, uint64_t b = 0) {
  uint64_t x = seed ^ (a * 0x9e3779b97f4a7c15ull) ^ (b * 0xc2b2ae3d27d4eb4full);
  x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 32;
  return static_cast<uint32_t>(x);
}

}  // namespace coppice
