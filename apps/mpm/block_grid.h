// The grid of a solver: a pointer.pointer.dense tree whose blocks are where the particles are.
//
// Thread-compatible.
#pragma once
#include <optional>

#include "apps/mpm/block_order.h"
#include "apps/mpm/solver_types.h"
#include "core/math.h"
#include "sparse/ranks/cluster.h"
#include "sparse/tree.h"

namespace coppice::mpm {

template <int D>
class BlockGrid {
 public:
  // `cells` are those of the domain, per axis. Wide nodes have second values (solver_types.h). Over ranks
  // each has a part of it.
  BlockGrid(IntrusivePtr<Device> device, const Vec3i& cells, bool is_wide,
            const std::optional<Cluster>& cluster = {});

  Tree& tree() { return tree_; }
  const Node& leaf() const { return leaf_; }                // its containers are the blocks
  const Field<NodeValue>& nodes() const { return nodes_; }  // kBlockSize<D> of them per axis of a block
  const Field<NodeValue>& tiles() const { return tiles_; }  // kTileSize<D> nodes per axis of a block
  // The second values of nodes and tiles, where nodes are wide.
  bool is_wide() const { return nodes_before_.has_value(); }
  const Field<NodeValue>& nodes_before() const { return *nodes_before_; }
  const Field<NodeValue>& tiles_before() const { return *tiles_before_; }
  const Field<uint32_t>& numbers() const { return numbers_; }  // each block's place in the loop list
  const BlockOrder<D>& order() const { return order_; }        // of all blocks in the list

 private:
  BlockOrder<D> order_;
  Tree tree_;
  Node block_, leaf_;
  Field<NodeValue> tiles_;
  Field<uint32_t> numbers_;
  Field<NodeValue> nodes_;
  std::optional<Field<NodeValue>> nodes_before_, tiles_before_;
};

}  // namespace coppice::mpm
