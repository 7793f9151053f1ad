// All active cells of a node on the host, with their coordinates: for files, and for what has no box.
//
//     const ActiveCells<float> smoke = wait_read_active(density);
//     for (size_t i = 0; i < smoke.values.size(); ++i) use(smoke.coords[i], smoke.values[i]);
//
// A snapshot in stream order, as those of sparse/read_back.h.
#pragma once
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

// Holds the active cells of a node: cell i is at coords[i], in tree axes (missing ones 0), and has values[i].
template <class T>
struct ActiveCells {
  std::vector<std::array<int32_t, 3>> coords;
  std::vector<T> values;
};

struct TreeField;  // sparse/tree_layout.h

namespace detail {
ActiveCells<std::byte> wait_active_bytes(const TreeRef& tree, const FieldId& field);
// The node is no dynamic one. Without a field there are no values, and coordinates are all.
ActiveCells<std::byte> wait_active_of(TreeStorage& tree, uint32_t node, const TreeField* field);
}  // namespace detail

// Returns all active cells of the field's node, container by container in the order of their coordinates,
// in each the last axis fastest; of a tree over ranks, whose ranks all ask together, those that are this
// rank's own, first those in blocks that have none of other ranks beside them. Cost: a pass over the
// containers, and 12 bytes and a value per cell on the way. Throws the error of an earlier launch, if one
// failed. Errors: kInvalidArgument for a node's topology, a field on a dynamic node, and a temporary that
// has no values now; kOutOfMemory for more than 2^32 - 1 cells.
template <class T>
ActiveCells<T> wait_read_active(const Field<T>& field) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no array of its values; use unsigned char");
  ActiveCells<std::byte> bytes = detail::wait_active_bytes(field.tree, field.id);
  ActiveCells<T> cells{std::move(bytes.coords), std::vector<T>(bytes.values.size() / sizeof(T))};
  if (!cells.values.empty())
    std::memcpy(static_cast<void*>(cells.values.data()), bytes.values.data(), bytes.values.size());
  return cells;
}

}  // namespace coppice
