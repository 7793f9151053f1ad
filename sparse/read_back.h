// Values of a tree on the host.
//
//     std::vector<float> u = wait_read(temperature, {0, 0}, {64, 64});      // u[64 * i + j]
//
// A snapshot in stream order: it shows what the launches before it did, and blocks
// the host until these are done.
#pragma once
#include <array>
#include <cstddef>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

namespace detail {

// Errors: kInvalidArgument when they are not as many as the tree has dimensions, but for zeros behind them.
void check_count(TreeStorage& tree, const GivenCoord& coord);
// Returns the field's tree. Errors: kInvalidArgument when there is none.
TreeStorage& tree_to_read(const TreeRef& tree);
// Holds the cells per axis of the tree from `begin` up to, not including, `end`. Errors: kInvalidArgument
// when one is negative, or all are more than 2^40.
using BoxSize = std::array<uint32_t, 3>;
BoxSize box_size(const TreeRef& tree, const HostCoord& begin, const HostCoord& end);
uint64_t count_cells(const BoxSize& size);
// Throws the Error kOutOfMemory that the host has no memory for the values of a box.
[[noreturn]] void refuse_box(const TreeRef& tree, const BoxSize& size, size_t value_bytes);
// Returns all values of the list at `coord`.
std::vector<std::byte> wait_list_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& coord);
// Errors: kInvalidArgument for what has no values in cells: a node's topology, a field on a dynamic node.
void wait_read_bytes(const TreeRef& tree, const FieldId& field, const HostCoord& begin, const BoxSize& size,
                     void* values);

}  // namespace detail

// Returns the values of the cells from `begin` up to, not including, `end`, the last axis fastest.
// Inactive cells, and those outside the tree, give zeros and stay as they are. Of a tree over ranks all ranks
// read the same box together, and each gets all of it. Throws the error of an
// earlier launch, if one failed. Errors: kInvalidArgument at once for a temporary that has no values now.
template <class T>
std::vector<T> wait_read(const Field<T>& field, const detail::GivenCoord& begin,
                         const detail::GivenCoord& end) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no array of its values; use unsigned char");
  detail::check_count(detail::tree_to_read(field.tree), begin);
  detail::check_count(detail::tree_to_read(field.tree), end);
  const detail::BoxSize size = detail::box_size(field.tree, begin.at, end.at);
  std::vector<T> values;
  try {
    values.resize(detail::count_cells(size));
  } catch (const std::bad_alloc&) {
    detail::refuse_box(field.tree, size, sizeof(T));
  } catch (const std::length_error&) {
    detail::refuse_box(field.tree, size, sizeof(T));
  }
  detail::wait_read_bytes(field.tree, field.id, begin.at, size, values.data());
  return values;
}
// Returns the value of one cell.
template <class T>
T wait_read(const Field<T>& field, const detail::GivenCoord& coord) {
  detail::check_count(detail::tree_to_read(field.tree), coord);
  T value;
  detail::wait_read_bytes(field.tree, field.id, coord.at, {1, 1, 1}, &value);
  return value;
}

// Returns the elements of the list at `coord` of a field on a dynamic node; none where there is no list.
// Errors: kInvalidArgument on another node.
template <class T>
std::vector<T> wait_read_list(const Field<T>& field, const detail::GivenCoord& coord) {
  detail::check_count(detail::tree_to_read(field.tree), coord);
  const std::vector<std::byte> bytes = detail::wait_list_bytes(field.tree, field.id, coord.at);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
  return values;
}

}  // namespace coppice
