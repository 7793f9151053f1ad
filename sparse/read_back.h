// Values of a tree on the host.
//
//     std::vector<float> u = wait_read(temperature, {0, 0}, {64, 64});      // u[64 * i + j]
//
// A snapshot in stream order: it shows what the launches before it did, and blocks the host until these are done.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

namespace detail {

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

// Errors: kInvalidArgument when they are not as many as the tree has dimensions.
void check_count(const TreeRef& tree, const GivenCoord& coord);
// Cells from `begin` up to, not including, `end`. Errors: kInvalidArgument when an extent is negative.
uint64_t count_box(const TreeRef& tree, const HostCoord& begin, const HostCoord& end);
// Values of the list at `coord`, all of them.
std::vector<std::byte> wait_list_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& coord);
void wait_read_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& begin, const HostCoord& end,
                     void* values);

}  // namespace detail

// The values of the cells from `begin` up to, not including, `end`, the last axis fastest. Inactive cells, and those
// outside the tree, give zeros and stay as they are. Throws the error of an earlier launch, if one failed.
template <class T>
std::vector<T> wait_read(const Field<T>& field, const detail::GivenCoord& begin,
                         const detail::GivenCoord& end) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no array of its values; use unsigned char");
  detail::check_count(field.tree, begin);
  detail::check_count(field.tree, end);
  std::vector<T> values(detail::count_box(field.tree, begin.at, end.at));
  detail::wait_read_bytes(field.tree, field.id, begin.at, end.at, values.data());
  return values;
}
// One value.
template <class T>
T wait_read(const Field<T>& field, const detail::GivenCoord& coord) {
  detail::check_count(field.tree, coord);
  const auto& [x, y, z] = coord.at;
  T value;
  detail::wait_read_bytes(field.tree, field.id, coord.at, {x + 1, y + 1, z + 1}, &value);
  return value;
}

// The elements of the list at `coord` of a field on a dynamic node; none where there is no list. Errors: kInvalidArgument
// on another node.
template <class T>
std::vector<T> wait_read_list(const Field<T>& field, const detail::GivenCoord& coord) {
  detail::check_count(field.tree, coord);
  const std::vector<std::byte> bytes = detail::wait_list_bytes(field.tree, field.id, coord.at);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
  return values;
}

}  // namespace coppice
