// Atomic operations on numbers of fields, and sums of values that consist of numbers.
//
// Device-clean. All are relaxed: they order nothing but the number that they change. A value of several
// numbers is changed number by number, so that others may see some of them changed and some not yet.
#pragma once
#include <type_traits>

#include "gpu/device_intrinsics.h"
#include "sparse/device/sum_types.h"

namespace coppice::device {

// Calls visit(first of some numbers in *to, first in value, how many) for the numbers of a value, in order:
// those that are side by side come together, and how many they are is a std::integral_constant.
template <class T, class Visit>
COPPICE_INLINE void each_run(T* to, const T& value, const Visit& visit) {
  if constexpr (AtomicNumber<T>) {
    visit(to, &value, std::integral_constant<int, 1>{});
  } else if constexpr (FixedEigenMatrix<T>) {
    visit(reinterpret_cast<typename T::Scalar*>(to), reinterpret_cast<const typename T::Scalar*>(&value),
          std::integral_constant<int, T::RowsAtCompileTime * T::ColsAtCompileTime>{});
  } else if constexpr (FixedArray<T>) {
    constexpr int n = sizeof(T) / sizeof(typename T::value_type);
    if constexpr (AtomicNumber<typename T::value_type>) {
      visit(to->data(), value.data(), std::integral_constant<int, n>{});
    } else {
      COPPICE_UNROLL
      for (int i = 0; i < n; ++i) each_run(to->data() + i, value.data()[i], visit);
    }
  } else {
    const auto member = [&]<class M>(const M& from) __attribute__((always_inline)) {
      const auto at =
          reinterpret_cast<const unsigned char*>(&from) - reinterpret_cast<const unsigned char*>(&value);
      each_run(reinterpret_cast<M*>(reinterpret_cast<unsigned char*>(to) + at), from, visit);
    };
    with_members<member_count<T>()>(
        value, [&](const auto&... from) __attribute__((always_inline)) { (member(from), ...); });
  }
}

// Numbers are the bits that they consist of for what moves them.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
COPPICE_INLINE BitsOf<T> bits_of(T v) {
  return __builtin_bit_cast(BitsOf<T>, v);
}
template <class T>
COPPICE_INLINE BitsOf<T>* bits_at(T* p) {
  return reinterpret_cast<BitsOf<T>*>(p);
}

// Calls an operation on the bits of a number, that for 4 bytes or that for 8, and returns what was there
// before. A macro names the function that is called: kernels' rules know it by the call.
#define COPPICE_BY_SIZE(operation, ...)                         \
  if constexpr (sizeof(T) == 4)                                 \
    return __builtin_bit_cast(T, operation##_u32(__VA_ARGS__)); \
  else                                                          \
    return __builtin_bit_cast(T, operation##_u64(__VA_ARGS__));

// All that follows but add_alone() and what adds values returns what was there before. Integers are added in
// two's complement.
template <class T>
COPPICE_INLINE T atomic_add(T* p, T v) {
  if constexpr (std::is_same_v<T, float>) {
    return coppice_fetch_add_f32(p, v);
  } else if constexpr (std::is_same_v<T, double>) {
    return coppice_fetch_add_f64(p, v);
  } else {
    COPPICE_BY_SIZE(coppice_fetch_add, bits_at(p), bits_of(v))
  }
}

// Adds where no other thread does so at that moment.
template <class T>
COPPICE_INLINE void add_alone(T* p, T v) {
  if constexpr (std::is_integral_v<T>)
    *p = static_cast<T>(static_cast<std::make_unsigned_t<T>>(*p) + static_cast<std::make_unsigned_t<T>>(v));
  else
    *p += v;
}

// Adds to numbers side by side. On a CPU, an operation for two floats takes as long as one for a single one.
template <class N, int kCount>
COPPICE_INLINE void atomic_add_run(N* to, const N* values, std::integral_constant<int, kCount>) {
  int i = 0;
  if constexpr (std::is_same_v<N, float> && kCount > 1) {
    if (coppice_has_workers()) {
      if (reinterpret_cast<uintptr_t>(to) % 8 != 0) atomic_add(to, values[i++]);
      for (; i + 1 < kCount; i += 2) coppice_add_two_f32(to + i, values[i], values[i + 1]);
    }
  }
  COPPICE_UNROLL
  for (; i < kCount; ++i) atomic_add(to + i, values[i]);
}

// Adds to floats in aligned groups of four. Between its members and behind them a struct may have gaps,
// to which nothing is added.
template <class T>
COPPICE_INLINE void atomic_add_fours(T* p, const T& v) {
  constexpr int n = sizeof(T) / sizeof(float);
  float values[n] = {};
  bool is_there[n] = {};
  each_run(
      p, v, [&](const float* to, const float* from, auto count) __attribute__((always_inline)) {
        const auto first = to - reinterpret_cast<const float*>(p);
        COPPICE_UNROLL
        for (int i = 0; i < count(); ++i) values[first + i] = from[i], is_there[first + i] = true;
      });
  COPPICE_UNROLL
  for (int i = 0; i < n; i += 4) {
    const uint32_t which = is_there[i] | is_there[i + 1] << 1 | is_there[i + 2] << 2 | is_there[i + 3] << 3;
    if (which == 0) continue;
    coppice_add_four_f32(reinterpret_cast<float*>(p) + i, values[i], values[i + 1], values[i + 2],
                         values[i + 3], which);
  }
}

// Do so with each number of a value.
template <class T>
COPPICE_INLINE void atomic_add_value(T* p, const T& v) {
  if constexpr (has_fours_of_floats<T>()) {
    if (coppice_has_workers()) return atomic_add_fours(p, v);
  }
  each_run(
      p, v, [](auto* to, const auto* values, auto count) __attribute__((always_inline)) {
        atomic_add_run(to, values, count);
      });
}
template <class T>
COPPICE_INLINE void add_value_alone(T* p, const T& v) {
  each_run(
      p, v, []<class N>(N * to, const N* values, auto count) __attribute__((always_inline)) {
        COPPICE_UNROLL
        for (int i = 0; i < count(); ++i) add_alone(to + i, values[i]);
      });
}

template <class T>
COPPICE_INLINE T fetch_min_integer(T* p, T v) {
  if constexpr (std::is_unsigned_v<T>) {
    COPPICE_BY_SIZE(coppice_fetch_min, bits_at(p), bits_of(v))
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(coppice_fetch_min_i32(reinterpret_cast<int32_t*>(p), static_cast<int32_t>(v)));
  } else {
    return static_cast<T>(coppice_fetch_min_i64(reinterpret_cast<int64_t*>(p), static_cast<int64_t>(v)));
  }
}
template <class T>
COPPICE_INLINE T fetch_max_integer(T* p, T v) {
  if constexpr (std::is_unsigned_v<T>) {
    COPPICE_BY_SIZE(coppice_fetch_max, bits_at(p), bits_of(v))
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(coppice_fetch_max_i32(reinterpret_cast<int32_t*>(p), static_cast<int32_t>(v)));
  } else {
    return static_cast<T>(coppice_fetch_max_i64(reinterpret_cast<int64_t*>(p), static_cast<int64_t>(v)));
  }
}
// Floats from +0 upward are ordered as their bits are, read as signed integers, and those from -0 downward
// the other way round, read as unsigned ones. So a float that is not negative raises by the larger signed
// integer, and lowers by the smaller one: in either, all negative ones are below it. A negative one does the
// opposite with unsigned integers, where all positive ones are below. A NaN changes nothing.
template <class T>
COPPICE_INLINE T fetch_extreme_float(T* p, T v, bool is_max) {
  using Signed = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  if (v != v) return __builtin_bit_cast(T, __atomic_load_n(bits_at(p), __ATOMIC_RELAXED));
  const BitsOf<T> bits = bits_of(v);
  const bool is_negative = (bits >> (8 * sizeof(T) - 1)) != 0;
  BitsOf<T> old;
  if (is_negative)
    old = is_max ? fetch_min_integer(bits_at(p), bits) : fetch_max_integer(bits_at(p), bits);
  else {
    Signed* const to = reinterpret_cast<Signed*>(p);
    const auto as_signed = static_cast<Signed>(bits);
    old =
        static_cast<BitsOf<T>>(is_max ? fetch_max_integer(to, as_signed) : fetch_min_integer(to, as_signed));
  }
  return __builtin_bit_cast(T, old);
}
template <class T>
COPPICE_INLINE T fetch_min(T* p, T v) {
  if constexpr (std::is_integral_v<T>)
    return fetch_min_integer(p, v);
  else
    return fetch_extreme_float(p, v, false);
}
template <class T>
COPPICE_INLINE T fetch_max(T* p, T v) {
  if constexpr (std::is_integral_v<T>)
    return fetch_max_integer(p, v);
  else
    return fetch_extreme_float(p, v, true);
}
template <class T>
COPPICE_INLINE T fetch_or(T* p, T v) {
  COPPICE_BY_SIZE(coppice_fetch_or, bits_at(p), bits_of(v))
}
template <class T>
COPPICE_INLINE T fetch_and(T* p, T v) {
  COPPICE_BY_SIZE(coppice_fetch_and, bits_at(p), bits_of(v))
}
template <class T>
COPPICE_INLINE T fetch_xor(T* p, T v) {
  COPPICE_BY_SIZE(coppice_fetch_xor, bits_at(p), bits_of(v))
}
template <class T>
COPPICE_INLINE T exchange_number(T* p, T v) {
  COPPICE_BY_SIZE(coppice_exchange_relaxed, bits_at(p), bits_of(v))
}
// Compares bits: of floats, -0 is not +0, and a NaN is itself.
template <class T>
COPPICE_INLINE T compare_exchange_number(T* p, T expected, T desired) {
  COPPICE_BY_SIZE(coppice_compare_exchange_relaxed, bits_at(p), bits_of(expected), bits_of(desired))
}

#undef COPPICE_BY_SIZE

}  // namespace coppice::device
