// A coordinate that the host gives to a tree's functions, with how many numbers were written.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace coppice::detail {

using HostCoord = std::array<int32_t, 3>;  // tree axes, in axis order; those that the tree lacks are ignored

// Errors: kOutOfRange, for what is no coordinate of any tree: these are of 32 bits.
[[noreturn]] void refuse_axis(const std::string& value);

// Holds a coordinate as the caller wrote it: {x, y}, or a whole array, which fits every tree.
struct GivenCoord {
  HostCoord at{};
  uint32_t count = 0;  // 0: not known

  template <std::integral... Axes>
  requires(sizeof...(Axes) >= 1 && sizeof...(Axes) <= 3) GivenCoord(Axes... axes)
      : at{axis_of(axes)...}, count(sizeof...(Axes)) {}
  GivenCoord(const HostCoord& coord) : at(coord) {}

 private:
  template <class Axis>
  static int32_t axis_of(Axis axis) {
    if constexpr (sizeof(Axis) >= sizeof(int32_t)) {
      if (!std::in_range<int32_t>(axis)) refuse_axis(std::to_string(axis));
    }
    return static_cast<int32_t>(axis);
  }
};

}  // namespace coppice::detail
