// The tree's nodes and fields (see block_grid.h).
#include "apps/mpm/block_grid.h"

namespace coppice::mpm {
namespace {

template <int D>
BlockOrder<D> order_of(const Vec3i& cells) {
  constexpr int b = kBlockSize<D>;
  BlockOrder<D> order{D == 3 ? 8 : 16, {}};
  for (int axis = 0; axis < D; ++axis) {
    const int blocks = (cells[axis] + 2 * kPad + b - 1) / b + 1;
    order.upper[axis] = (blocks + order.fan - 1) / order.fan;
  }
  return order;
}

template <int D>
Node make_block(const Tree& tree, const BlockOrder<D>& order) {
  const auto& top = order.upper;
  const int fan = order.fan;
  if constexpr (D == 3)
    return tree.root().pointer({top[0], top[1], top[2]}).pointer({fan, fan, fan});
  else
    return tree.root().pointer({top[0], top[1]}).pointer({fan, fan});
}

Tree make_tree(IntrusivePtr<Device> device, const std::optional<Cluster>& cluster) {
  const TreeOptions options{.name = "mpm.grid"};
  return cluster ? Tree(*cluster, std::move(device), options) : Tree(std::move(device), options);
}

template <int D>
Node make_dense(const Node& block, int size) {
  if constexpr (D == 3)
    return block.dense({size, size, size});
  else
    return block.dense({size, size});
}

}  // namespace

template <int D>
BlockGrid<D>::BlockGrid(IntrusivePtr<Device> device, const Vec3i& cells, bool is_wide,
                        const std::optional<Cluster>& cluster)
    : order_(order_of<D>(cells)),
      tree_(make_tree(std::move(device), cluster)),
      block_(make_block<D>(tree_, order_)),
      leaf_(make_dense<D>(block_, kBlockSize<D>)),
      tiles_(make_dense<D>(block_, kTileSize<D>).template place<NodeValue>("tile")),
      numbers_(make_dense<D>(block_, 1).template place<uint32_t>("number")),
      nodes_(leaf_.template place<NodeValue>("grid")) {
  if (is_wide) {
    tiles_before_ = make_dense<D>(block_, kTileSize<D>).template place<NodeValue>("tile_before");
    nodes_before_ = leaf_.template place<NodeValue>("grid_before");
  }
  tree_.freeze();
}

template class BlockGrid<2>;
template class BlockGrid<3>;

}  // namespace coppice::mpm
