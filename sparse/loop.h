// A loop says what a launch runs over: the cells or containers of a node, the cells of a box, the numbers of
// a range, or the coordinates of one of two or three dimensions.
#pragma once
#include <cstdint>
#include <optional>

#include "sparse/device/layout.h"
#include "sparse/given_coord.h"
#include "sparse/tree.h"

namespace coppice {

// Describes what a launch runs over.
struct Loop {
  TreeRef tree;  // null: a range
  uint32_t node = 0;
  int64_t begin = 0;
  uint64_t count = 0;
  const uint64_t* device_count = nullptr;
  std::optional<device::LoopBox> box = {};  // of over_box(), or of a range of several dimensions
  int range_dims = 0;                       // of such a range
  bool is_own = false;                      // of own_range()
};
// Loops over the active cells of a node (Cell kernels), its containers (Block and BlockTeam kernels) or,
// for a dynamic node, the elements of its lists (Entry kernels). Errors: kInvalidArgument for a node that
// was moved from.
Loop over(const Node& node);
// Loops over the cells of a node from `low` up to, not including, `high`, coordinates in tree axes: those
// that are not active become so first, and are zero, with all nodes above them; then a Cell kernel runs
// over the cells of the box. Cells outside of it are neither visited nor activated; where a container that
// the box meets has no cells of its own accord (a dense leaf below a pointer node), the container becomes
// active as a whole. An empty box does nothing. Fixes the tree's layout. For pointer, bitmasked and dense
// nodes. The launch's order of things, growth and collection are those of a launch that activates the
// cells and one over the node behind it, and an Error (kOutOfMemory) of the first is the launch's. Cost:
// for each container that the box meets a walk, and an atomic operation per 64 bits of a mask; then that
// of over(node), of whose containers each is looked at, those that the box does not meet by a few
// comparisons. The last cell of a domain that ends at 2^31 is in no box: `high` is a coordinate, too.
// Errors: kOutOfRange where the box is not within the domain, kOutOfMemory where it meets more than 2^40
// containers, kInvalidArgument for another node or number of axes, or a kernel that takes no Cell.
Loop over_box(const Node& node, const detail::GivenCoord& low, const detail::GivenCoord& high);
// Loops over the items from `begin` (by default 0) up to, not including, `end`, over none where that is not
// above it.
inline Loop range(int64_t begin, int64_t end) {
  return {{}, 0, begin, end > begin ? static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) : 0};
}
inline Loop range(int64_t end) { return range(0, end); }
// Loops over so many items that are this rank's own, as its particles are: where trees are cut over ranks
// (docs/ranks.md) each rank gives its own number, and reads the cells that are there, its own and its
// mirrors. A range() elsewhere.
inline Loop own_range(int64_t end) {
  Loop loop = range(end);
  loop.is_own = true;
  return loop;
}
// Loops over the coordinates from `low` (by default zeros) up to, not including, `high`, two or three numbers
// each: for a kernel that takes an Item2 or an Item3. The last axis is the fastest one; no tree is asked. One
// where an axis has nothing is empty. Errors: kInvalidArgument for another number of axes, or more than 2^62
// items.
Loop range(const detail::GivenCoord& high);
Loop range(const detail::GivenCoord& low, const detail::GivenCoord& high);
// Loops over as many items as device memory says when the launch starts. Errors: kInvalidArgument for null;
// from the launch, for an address that 8 does not divide, beyond a buffer's end, or of another device.
Loop range_on_device(const uint64_t* count);

}  // namespace coppice
