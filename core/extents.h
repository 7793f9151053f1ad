// Integer arithmetic for sizes: division and rounding upwards.
#pragma once

#include <concepts>
#include <type_traits>

namespace coppice {

// Returns ceil(a / b) for a >= 0, b > 0, without the overflow of (a + b - 1) / b.
template <std::integral T>
constexpr T div_up(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
// Returns the smallest multiple of b that is at least a; a >= 0, b > 0.
template <std::integral T>
constexpr T round_up(T a, std::type_identity_t<T> b) {
  return div_up(a, b) * b;
}

}  // namespace coppice
