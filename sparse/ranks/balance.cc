// Finds the tree of a node (see balance.h).
#include "sparse/ranks/balance.h"

#include <fmt/format.h>

#include "core/error.h"
#include "sparse/loop.h"
#include "sparse/ranks/tree_cut.h"
#include "sparse/tree_storage.h"

namespace coppice {

double wait_balance(const Node& node, std::span<const CellWeight> own) {
  const TreeRef shared = over(node).tree;
  TreeStorage& tree = *shared;
  tree.freeze();
  if (!tree.is_over_ranks())
    throw Error(ErrorCode::kInvalidArgument, node.path() + ": its tree is not cut over ranks");
  tree.refuse_above_cut(node.id(), "wait_balance()");
  return tree.cut().wait_balance(tree, node.id(), own);
}

}  // namespace coppice
