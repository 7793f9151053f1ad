// Tells which rank owns which cells of a tree that is cut over ranks: for what belongs to cells and is not in
// the tree, as particles, which go where their cells go.
//
//     const CellOwners owners(leaf);                              // all ranks together
//     program.launch(find_owner, own_range(n), owners.map(), particles, ranks);  // map.owner(cell) in kernels
#pragma once
#include <vector>

#include "gpu/device.h"
#include "sparse/device/rank_map.h"
#include "sparse/tree.h"

namespace coppice {

class CellOwners {
 public:
  // As the tree is cut now; until something may change its topology. All ranks call it together. Errors:
  // kInvalidArgument for a tree that is not cut, or a node that does not lie below the cut.
  explicit CellOwners(const Node& node);

  // Returns the rank of a cell's owner; the cell is within the domain, and has as many numbers as the tree
  // has axes.
  template <int D>
  int owner(const int32_t (&cell)[D]) const {
    device::RankMap here = map_;
    here.ends = host_ends_.data();
    return static_cast<int>(here.owner<D>(cell));
  }
  // May be used as long as this object lives, and launches that have it run.
  device::RankMap map() const { return map_; }

 private:
  std::vector<uint64_t> host_ends_;
  IntrusivePtr<Buffer> ends_;
  device::RankMap map_;
};

}  // namespace coppice
