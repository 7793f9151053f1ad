// The grid of a solver: a pointer.pointer.dense tree whose blocks are where the particles are.
//
// Thread-compatible.
#pragma once
#include "apps/mpm/solver_types.h"
#include "core/math.h"
#include "sparse/tree.h"

namespace coppice::mpm {

template <int D>
class BlockGrid {
 public:
  // `cells` are those of the domain, per axis.
  BlockGrid(IntrusivePtr<Device> device, const Vec3i& cells);

  Tree& tree() { return tree_; }
  const Node& leaf() const { return leaf_; }                   // its containers are the blocks
  const Field<NodeValue>& nodes() const { return nodes_; }     // kBlockSize<D> of them per axis of a block
  const Field<NodeValue>& tiles() const { return tiles_; }     // kTileSize<D> nodes per axis of a block
  const Field<uint32_t>& numbers() const { return numbers_; }  // each block's place in the loop list

 private:
  Tree tree_;
  Node block_, leaf_;
  Field<NodeValue> tiles_;
  Field<uint32_t> numbers_;
  Field<NodeValue> nodes_;
};

}  // namespace coppice::mpm
