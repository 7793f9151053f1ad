// Sizes of D-dimensional index boxes, linear indices in them, and small integer arithmetic.
//
// Linear order: the last axis varies fastest (row-major), as in arrays of the sparse trees.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>

#include "core/check.h"

namespace coppice {

template <std::integral T>
constexpr bool is_power_of_two(T x) {
  return x > 0 && (x & (x - 1)) == 0;
}
// Returns floor(log2(x)), x > 0.
template <std::integral T>
constexpr int log2_floor(T x) {
  return static_cast<int>(std::bit_width(static_cast<std::make_unsigned_t<T>>(x))) - 1;
}
// Returns ceil(log2(x)), x > 0: the bits that indices 0 .. x-1 need.
template <std::integral T>
constexpr int log2_ceil(T x) {
  return x <= 1 ? 0 : log2_floor(x - 1) + 1;
}
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
// Return floor(a / b) and its remainder in [0, b), b > 0: for cells and blocks of negative coordinates.
template <std::signed_integral T>
constexpr T floor_div(T a, std::type_identity_t<T> b) {
  return a / b - (a % b < 0 ? 1 : 0);
}
template <std::signed_integral T>
constexpr T floor_mod(T a, std::type_identity_t<T> b) {
  const T r = a % b;
  return r < 0 ? r + b : r;
}

template <int D>
struct Extents {
  static_assert(D >= 1 && D <= 8);
  std::array<int32_t, D> size{};

  constexpr int32_t operator[](int axis) const { return size[axis]; }
  constexpr int32_t& operator[](int axis) { return size[axis]; }
  friend constexpr bool operator==(const Extents&, const Extents&) = default;

  // Returns the cells in the box; 0 when any axis is. It has 64 bits: three axes of 2^20 do not fit in 32.
  constexpr int64_t count() const {
    int64_t n = 1;
    for (int32_t s : size) n *= s;
    return n;
  }
  constexpr bool contains(const std::array<int32_t, D>& index) const {
    for (int axis = 0; axis < D; ++axis)
      if (index[axis] < 0 || index[axis] >= size[axis]) return false;
    return true;
  }
  constexpr int64_t linear(const std::array<int32_t, D>& index) const {
    int64_t at = 0;
    for (int axis = 0; axis < D; ++axis) {
      COPPICE_DCHECK(index[axis] >= 0 && index[axis] < size[axis], "axis {}: {} of {}", axis, index[axis],
                     size[axis]);
      at = at * size[axis] + index[axis];
    }
    return at;
  }
  constexpr std::array<int32_t, D> index_of(int64_t linear_index) const {
    std::array<int32_t, D> index{};
    for (int axis = D - 1; axis >= 0; --axis) {
      index[axis] = static_cast<int32_t>(linear_index % size[axis]);
      linear_index /= size[axis];
    }
    return index;
  }
};

// Blocks of `block` cells that cover `cells`.
template <int D>
constexpr Extents<D> div_up(const Extents<D>& cells, const Extents<D>& block) {
  Extents<D> result;
  for (int axis = 0; axis < D; ++axis) result[axis] = div_up(cells[axis], block[axis]);
  return result;
}

static_assert(sizeof(Extents<3>) == 12 && alignof(Extents<3>) == 4);

}  // namespace coppice
