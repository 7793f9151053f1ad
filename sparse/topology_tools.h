// Topology tools: morphology of a node's active cells, pruning, and set operations between trees.
//
//     dilate(leaf, Neighbourhood::kFaces, 2);
//     copy_topology(leaf, other_leaf);
//
// All run in stream order on the tree's device, in 1 to 3 dimensions. The cells of a bitmasked or pointer
// node are active one by one. A dense node's are active together with the nearest bitmasked or pointer cell
// above, which a tool then changes as a whole: dilation activates leaves beside active ones, erosion drops a
// leaf if any of its cells is to go, set operations keep it while any of its cells is to be active.
//
// A step decides from masks of what was active before it, so nothing cascades within a step, and the
// result is the same on every device and any number of threads. Scratch: one bit per cell of the
// containers in use (a leaf of 8^3 cells: 64 bytes, and its entry in a loop list, 24 bytes), for the time
// of the call; counts have 64 bits.
//
// Errors, thrown: kInvalidArgument for the root, for a node without any bitmasked or pointer node on its
// way (it is always active), for a dynamic node (prune() without fields takes one), for trees of different
// dimensions or devices, and for negative steps. The
// async value's errors: kOutOfMemory; what had been changed until then stays changed. Tools that say so
// also give kOutOfRange, as an activation does; then nothing has been changed.
#pragma once
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

// Says which cells around one are neighbours: those that share a face with it, at least an edge, or at
// least a vertex: 6, 18, 26 in three dimensions, 4, 8, 8 in two, 2, 2, 2 in one. The value is in how many
// coordinates they may differ.
enum class Neighbourhood : int32_t { kFaces = 1, kEdges = 2, kVertices = 3 };

// Activates every neighbour of an active cell, `steps` times, with zeros; at the domain's border it
// stops. Cost: the neighbours of every active cell as bit tests, and a tree walk for those that were
// not active in its own container.
AsyncValueRef<Chain> dilate(const Node& node, Neighbourhood neighbourhood, int steps = 1);
// Deactivates every active cell that has an inactive neighbour, `steps` times. What is outside the domain
// counts as inactive, as in OpenVDB, where it is background: shapes recede from the domain's border, too.
AsyncValueRef<Chain> erode(const Node& node, Neighbourhood neighbourhood, int steps = 1);

// Deactivates the cells of the nearest pointer node above `node` that hold nothing but zeros: no bit of a
// mask, no active cell below them, no value other than zero in any field. Their number. `node` may be a
// pointer node itself: then those of its parents' cells go that have no active cell of it, so that a tree
// of several levels shrinks from its leaves upwards:
//
//     prune(leaf), prune(inner);      // root.pointer(...).pointer(...), the inner one, .dense(...), the leaf
//
// Scratch: a bit per cell of the pointer node above. Temporaries do not count. Errors, thrown:
// kInvalidArgument for one without a pointer node above it; for one whose cells have temporaries between
// other values (of several nodes, or of one with nodes below it).
AsyncValueRef<uint64_t> prune(const Node& node);

namespace detail {
AsyncValueRef<uint64_t> prune_within(const Node& node, double tolerance, std::vector<FieldId> fields);
}

// Does the same with cells whose values of the given fields (on `node`, float or double) are all within
// the tolerance of zero, whatever their masks, other fields and, of a pointer node, active cells say. A NaN
// is not. Errors, thrown:
// kInvalidArgument for a field elsewhere, a temporary, or a tolerance that is negative or no number.
template <class T, class... More>
AsyncValueRef<uint64_t> prune(const Node& node, double tolerance, const Field<T>& field,
                              const Field<More>&... more) {
  static_assert((std::is_floating_point_v<T> && ... && std::is_floating_point_v<More>),
                "pruning compares fields of float or double");
  return detail::prune_within(node, tolerance, {field.id, more.id...});
}

// Makes the active cells of `to` those of `from`, cell by cell at the same coordinate of the two nodes.
// The values of cells that stay are kept, new ones are zero. Trees, leaf sizes, kinds and origins may
// differ. The async value is the error kOutOfRange when active cells of `from` are outside the domain of
// `to`; then nothing has been activated or deactivated. Cost of finding that out: a pass over the masks of
// `from`, where its domain is not within that of `to`.
AsyncValueRef<Chain> copy_topology(const Node& from, const Node& to);
// Makes the active cells of `to` those of either, in the same way. Errors as above.
AsyncValueRef<Chain> merge_topology(const Node& from, const Node& to);
// Makes them those of both. What lies outside of the domain of `to` is in none of both, and no error.
AsyncValueRef<Chain> intersect_topology(const Node& from, const Node& to);
// Makes them those of `to` that are not active in `from`, which may have others outside of the domain of
// `to`.
AsyncValueRef<Chain> subtract_topology(const Node& from, const Node& to);

}  // namespace coppice
