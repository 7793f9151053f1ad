// Sizes of a tree's nodes in memory: where fields and children lie in a cell, and how large containers are.
#pragma once
#include <vector>

#include "sparse/tree_layout.h"

namespace coppice {

// Finds the offsets and sizes of all nodes and fields. Errors: kInvalidArgument for more than 2^48 bytes.
void find_sizes(const TreeDescription& description, std::vector<TreeNode>& nodes,
                std::vector<TreeField>& fields);

}  // namespace coppice
