// Values that kernels stumble over: zeros, limits, NaN, infinities, denormals, and small ones among them.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace coppice::kernel_fuzz {

template <class T>
T fuzz_value(uint64_t random) {
  const uint64_t way = random % 16, rest = random >> 8;
  if constexpr (std::is_integral_v<T>) {
    constexpr T kSpecial[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(),
                              std::numeric_limits<T>::max()};
    if (way < 4) return kSpecial[rest % std::size(kSpecial)];
    if (way < 12) return static_cast<T>(static_cast<int64_t>(rest % 21) - 8);
    return static_cast<T>(rest);
  } else {
    using Limits = std::numeric_limits<T>;
    const T special[] = {0,
                         -T(0),
                         1,
                         -1,
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::denorm_min(),
                         Limits::max(),
                         -Limits::min(),
                         T(0.5),
                         Limits::min() / 4};
    if (way < 4) return special[rest % std::size(special)];
    if (way < 8) return static_cast<T>(static_cast<int64_t>(rest % 21) - 8);
    if (way < 15)
      return static_cast<T>(
          std::ldexp(static_cast<double>(static_cast<int64_t>(rest % 200001) - 100000), -14));
    return static_cast<T>(
        std::ldexp(1.0 + static_cast<double>(rest % 4096) / 4096, static_cast<int>(rest >> 16) % 120));
  }
}

// `n` values of a type of shapes.py as bytes.
std::vector<unsigned char> fuzz_values(std::string_view type, uint64_t n, uint64_t seed);
// The same, all between -8 and 8.
std::vector<unsigned char> whole_values(std::string_view type, uint64_t n, uint64_t seed);
uint32_t bytes_of(std::string_view type);
// Returns whether two values are the same; every NaN is as good as another, and either zero where
// `either_zero` says so.
bool same_value(std::string_view type, const unsigned char* a, const unsigned char* b, bool either_zero);
std::string value_text(std::string_view type, const unsigned char* value);

}  // namespace coppice::kernel_fuzz
