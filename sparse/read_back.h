// Values of a tree on the host.
//
//     std::vector<float> u = wait_read(temperature, {0, 0}, {64, 64});      // u[64 * i + j]
//
// A snapshot in stream order: it shows what the launches before it did, and blocks the host until these are done.
#pragma once
#include <array>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

namespace detail {

using HostCoord = std::array<int32_t, 3>;  // tree axes, in axis order; those that the tree lacks are ignored

// Cells from `begin` up to, not including, `end`. Errors: kInvalidArgument when an extent is negative.
uint64_t count_box(const TreeRef& tree, const HostCoord& begin, const HostCoord& end);
void wait_read_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& begin, const HostCoord& end,
                     void* values);

}  // namespace detail

// The values of the cells from `begin` up to, not including, `end`, the last axis fastest. Inactive cells, and those
// outside the tree, give zeros and stay as they are. Throws the error of an earlier launch, if one failed.
template <class T>
std::vector<T> wait_read(const Field<T>& field, const detail::HostCoord& begin,
                         const detail::HostCoord& end) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no array of its values; use unsigned char");
  std::vector<T> values(detail::count_box(field.tree, begin, end));
  detail::wait_read_bytes(field.tree, field.id, begin, end, values.data());
  return values;
}
// One value.
template <class T>
T wait_read(const Field<T>& field, const detail::HostCoord& coord) {
  T value;
  detail::wait_read_bytes(field.tree, field.id, coord, {coord[0] + 1, coord[1] + 1, coord[2] + 1}, &value);
  return value;
}

}  // namespace coppice
