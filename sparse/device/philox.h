// Provides what Random (random.h) is made of: Philox4x32-10, and a logarithm with the same bits on every
// device.
//
// Device-clean.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/device_macros.h"

namespace coppice::device {

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a
// bijection of 128 bits for each key. Cost: 20 multiplications of 32 bits to 64, about 100 instructions.
struct PhiloxBlock {
  uint32_t word[4];
};
COPPICE_INLINE PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t(&c)[4] = counter.word;
  COPPICE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xd2511f53u} * c[0], p1 = uint64_t{0xcd9e8d57u} * c[2];
    c[0] = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, c[1] = static_cast<uint32_t>(p1);
    c[2] = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, c[3] = static_cast<uint32_t>(p0);
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;  // the golden ratio, sqrt(3) - 1
  }
  return counter;
}

// Returns a number in [0, 1) with 24 bits: every value is a float, and 1 is never rounded to.
COPPICE_INLINE float uniform_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// ln(x) of a normal x > 0, to 3 ulp: x = m 2^e with m near 1, ln m = 2 artanh z, z = (m - 1) / (m + 1), |z| <
// 0.172. Every product that is added to is fused by name, for back ends fuse where they can.
COPPICE_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
COPPICE_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class T>
inline T exact_log(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52, kBias = sizeof(T) == 4 ? 127 : 1023;
  constexpr int kTerms = sizeof(T) == 4 ? 5 : 11;  // the first one left out is below half an ulp
  const auto bits = __builtin_bit_cast(Bits, x);
  int exponent = static_cast<int>(bits >> kMantissa) - kBias;
  T m = __builtin_bit_cast(T, (bits & ((Bits{1} << kMantissa) - 1)) | Bits{kBias} << kMantissa);
  if (m > T(1.4142135623730951)) m *= T(0.5), ++exponent;
  const T z = (m - T(1)) / (m + T(1)), z2 = z * z;
  T sum = T(0);
  COPPICE_UNROLL
  for (int k = kTerms; k >= 0; --k) sum = fused(sum, z2, T(1) / T(2 * k + 1));
  return fused(T(exponent), T(0.6931471805599453), T(2) * z * sum);
}

}  // namespace coppice::device
