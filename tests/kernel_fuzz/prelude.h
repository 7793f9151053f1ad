// The fuzzer's kernels compute with this: arithmetic that C++ defines for every input, so that a difference
// between two devices is a fault. Integers wrap, shifts are masked, divisions and conversions guard what is
// undefined, and what C leaves open about NaNs and the sign of zeros is closed.
//
// The generated file is compiled twice. Clang compiles it to bitcode as any kernel file. The host compiler
// compiles it unoptimised behind reference.h, which defines KERNEL_FUZZ_REFERENCE, COPPICE_KERNEL and handles
// of host memory.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#ifndef KERNEL_FUZZ_REFERENCE
#include "coppice/kernel.h"
using namespace coppice;
#endif

// Sums of products are rounded twice, as the reference's are.
#ifdef __clang__
#pragma clang fp contract(off)
#endif

#define FUZZ_INLINE [[gnu::always_inline]] static inline

// The fault that the fuzzer's own test plants into the reference, one of those below; 0: none.
#if defined(KERNEL_FUZZ_REFERENCE) && defined(KERNEL_FUZZ_PLANT)
inline constexpr int kPlanted = KERNEL_FUZZ_PLANT;
#else
inline constexpr int kPlanted = 0;
#endif
inline constexpr int kPlantedInRem = 1, kPlantedInPowers = 2, kPlantedInWhole = 3, kPlantedInBarrier = 4,
                     kPlantedInNeighbours = 5, kPlantedInAppend = 6, kPlantedInGrow = 7;

namespace fuzz {

using i32 = int32_t;
using i64 = int64_t;
using u32 = uint32_t;
using u64 = uint64_t;

#define FUZZ_INTEGER(T, U, BITS)                                                                            \
  FUZZ_INLINE T add(T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }             \
  FUZZ_INLINE T sub(T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); }             \
  FUZZ_INLINE T mul(T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); }             \
  FUZZ_INLINE T shl(T a, T b) { return static_cast<T>(static_cast<U>(a) << (b & (BITS - 1))); }             \
  FUZZ_INLINE T sar(T a, T b) { return static_cast<T>(a >> (b & (BITS - 1))); }                             \
  FUZZ_INLINE T shr(T a, T b) { return static_cast<T>(static_cast<U>(a) >> (b & (BITS - 1))); }             \
  FUZZ_INLINE T div(T a, T b) { return b == 0 || b == -1 ? sub(T{0}, a) : static_cast<T>(a / b); }          \
  FUZZ_INLINE T rem(T a, T b) {                                                                             \
    return b == 0 || b == -1 ? static_cast<T>(kPlanted == kPlantedInRem && a == 6) : static_cast<T>(a % b); \
  }                                                                                                         \
  FUZZ_INLINE T udiv(T a, T b) {                                                                            \
    return b == 0 ? a : static_cast<T>(static_cast<U>(a) / static_cast<U>(b));                              \
  }                                                                                                         \
  FUZZ_INLINE T min(T a, T b) { return b < a ? b : a; }                                                     \
  FUZZ_INLINE T max(T a, T b) { return a < b ? b : a; }                                                     \
  FUZZ_INLINE T neg(T a) { return static_cast<T>(U{0} - static_cast<U>(a)); }                               \
  FUZZ_INLINE T abs(T a) { return a < 0 ? neg(a) : a; }
FUZZ_INTEGER(i32, u32, 32)
FUZZ_INTEGER(i64, u64, 64)
#undef FUZZ_INTEGER

FUZZ_INLINE i32 popcount(i32 a) { return __builtin_popcount(static_cast<u32>(a)); }
FUZZ_INLINE i32 clz(i32 a) { return a == 0 ? 32 : __builtin_clz(static_cast<u32>(a)); }
FUZZ_INLINE i32 ctz(i32 a) { return a == 0 ? 32 : __builtin_ctz(static_cast<u32>(a)); }
FUZZ_INLINE i32 mulhi(i32 a, i32 b) { return static_cast<i32>((static_cast<i64>(a) * b) >> 32); }
FUZZ_INLINE i64 mulhi(i64 a, i64 b) { return static_cast<i64>((static_cast<__int128>(a) * b) >> 64); }
FUZZ_INLINE i32 add_overflows(i32 a, i32 b) {
  i32 sum;
  return __builtin_add_overflow(a, b, &sum);
}
// An index of an array of `n` elements.
FUZZ_INLINE u32 at(i32 a, u32 n) { return static_cast<u32>(a) % n; }

#define FUZZ_FLOATING(F, I, SUFFIX, QUIET_NAN)                                                  \
  FUZZ_INLINE F to_##SUFFIX(i32 a) { return static_cast<F>(a); }                                \
  FUZZ_INLINE F to_##SUFFIX(i64 a) { return static_cast<F>(a); }                                \
  FUZZ_INLINE i32 to_i32(F a) {                                                                 \
    return a >= F(-2147483648.0) && a <= F(2147483520.0) ? static_cast<i32>(a) : a > 0 ? 1 : 0; \
  }                                                                                             \
  FUZZ_INLINE i64 to_i64(F a) {                                                                 \
    return a >= F(-9.2e18) && a <= F(9.2e18) ? static_cast<i64>(a) : a > 0 ? 1 : 0;             \
  }                                                                                             \
  FUZZ_INLINE I bits(F a) { return a != a ? I(QUIET_NAN) : __builtin_bit_cast(I, a); }          \
  FUZZ_INLINE F add(F a, F b) { return a + b; }                                                 \
  FUZZ_INLINE F sub(F a, F b) { return a - b; }                                                 \
  FUZZ_INLINE F mul(F a, F b) { return a * b; }                                                 \
  FUZZ_INLINE F div(F a, F b) { return a / b; }                                                 \
  FUZZ_INLINE F neg(F a) { return -a; }                                                         \
  FUZZ_INLINE F min(F a, F b) { return a == b ? a : std::fmin(a, b); }                          \
  FUZZ_INLINE F max(F a, F b) { return a == b ? a : std::fmax(a, b); }                          \
  FUZZ_INLINE F copysign(F a, F b) { return b != b ? a : std::copysign(a, b); }                 \
  /* What cannot overflow or be rounded, in whatever order sums are added. */                   \
  FUZZ_INLINE F whole(F a) {                                                                    \
    return std::trunc(std::fmin(std::fmax(a, F(-8)), F(kPlanted == kPlantedInWhole ? 7 : 8)));  \
  }                                                                                             \
  FUZZ_INLINE F pow(F a, F b) { return std::pow(a, b); }
FUZZ_FLOATING(float, i32, f32, 0x7fc00000)
FUZZ_FLOATING(double, i64, f64, 0x7ff8000000000000)
#undef FUZZ_FLOATING

// Signalling NaNs become quiet: what functions make of them is open.
FUZZ_INLINE float from_bits(i32 a) {
  const float x = __builtin_bit_cast(float, a);
  return x != x ? NAN : x;
}
FUZZ_INLINE double from_bits(i64 a) {
  const double x = __builtin_bit_cast(double, a);
  return x != x ? double(NAN) : x;
}

// Results by pointer, and those that are undefined for some inputs.
#define FUZZ_LIBM(F)                                                                       \
  FUZZ_INLINE F frexp_sum(F a) {                                                           \
    if (!(a - a == 0)) return a;                                                           \
    int exponent = 0;                                                                      \
    const F mantissa = std::frexp(a, &exponent);                                           \
    return mantissa + F(exponent);                                                         \
  }                                                                                        \
  FUZZ_INLINE F modf_sum(F a) {                                                            \
    F whole = 0;                                                                           \
    const F part = std::modf(a, &whole);                                                   \
    return part - whole;                                                                   \
  }                                                                                        \
  FUZZ_INLINE F scalbn(F a, i32 b) { return std::scalbn(a, b % 64); }                      \
  FUZZ_INLINE F ldexp(F a, i32 b) { return std::ldexp(a, b % 64); }                        \
  FUZZ_INLINE i64 lround(F a) { return a >= F(-1e9) && a <= F(1e9) ? std::lround(a) : 0; } \
  FUZZ_INLINE i32 ilogb(F a) { return a - a == 0 && a != 0 ? std::ilogb(a) : -1; }         \
  FUZZ_INLINE F nextafter(F a, F b) { return a == b ? a : std::nextafter(a, b); }
FUZZ_LIBM(float)
FUZZ_LIBM(double)
#undef FUZZ_LIBM

// Powers that become other operations, exact or closer (docs/floating-point.md): the reference says which.
#ifdef KERNEL_FUZZ_REFERENCE
#define FUZZ_POWER(F, constant, NAME, EXACT) \
  FUZZ_INLINE F NAME([[maybe_unused]] F a) { return EXACT; }
#else
#define FUZZ_POWER(F, constant, NAME, EXACT) \
  FUZZ_INLINE F NAME(F a) { return std::pow(a, F(constant)); }
#endif
#define FUZZ_POWERS(F)                                                     \
  FUZZ_POWER(F, 2, pow_2, (kPlanted == kPlantedInPowers ? -a * a : a * a)) \
  FUZZ_POWER(F, -1, pow_minus_1, F(1) / a)                                 \
  FUZZ_POWER(F, 1, pow_1, a)                                               \
  FUZZ_POWER(F, 0, pow_0, F(1))                                            \
  FUZZ_INLINE F pow_3(F a) { return std::pow(a, F(3)); }                   \
  FUZZ_INLINE F pow_third(F a) { return std::pow(a, F(1) / F(3)); }
FUZZ_POWERS(float)
FUZZ_POWERS(double)
FUZZ_POWER(float, 0.5, pow_half, a == -INFINITY ? INFINITY : std::fabs(std::sqrt(a)))
FUZZ_POWER(double, 0.5, pow_half, a == -INFINITY ? INFINITY : std::fabs(std::sqrt(a)))
#undef FUZZ_POWERS
#undef FUZZ_POWER

struct Mixed {
  i32 a;
  float b;
  i32 c[3];
  double d;
};

// A team's items, and a block team's fast memory.
inline constexpr i32 kTeamItems = 4;
template <class Place>
FUZZ_INLINE i32* fast(const Place& team) {
  return reinterpret_cast<i32*>(team.fast);
}

// Helpers that take the caller's own memory.
template <class T>
FUZZ_INLINE void swap(T& a, T& b) {
  const T c = a;
  a = b, b = c;
}
template <class T>
[[gnu::noinline]] static T* pick(T* a, T* b, bool first) {
  return first ? a : b;
}

}  // namespace fuzz
namespace m = fuzz;
