// A coordinate that the host gives to a tree's functions, with how many numbers were written.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>

namespace coppice::detail {

using HostCoord = std::array<int32_t, 3>;  // tree axes, in axis order; those that the tree lacks are ignored

// As the caller wrote it: {x, y}, or a whole array, which fits every tree.
struct GivenCoord {
  HostCoord at{};
  uint32_t count = 0;  // 0: not known

  template <std::integral... Axes>
  requires(sizeof...(Axes) >= 1 && sizeof...(Axes) <= 3) GivenCoord(Axes... axes)
      : at{static_cast<int32_t>(axes)...}, count(sizeof...(Axes)) {}
  GivenCoord(const HostCoord& coord) : at(coord) {}
};

}  // namespace coppice::detail
