// Finds the tree of a node (see balance.h).
#include "sparse/ranks/balance.h"

#include "sparse/ranks/tree_cut.h"
#include "sparse/tree_storage.h"

namespace coppice {

double wait_balance(const Node& node, std::span<const CellWeight> own) {
  const TreeRef tree = cut_tree_of(node, "wait_balance()");
  return tree->cut().wait_balance(*tree, node.id(), own);
}

}  // namespace coppice
