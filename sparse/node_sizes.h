// Sizes of a tree's nodes in memory: where fields and children lie in a cell, and how large containers are.
#pragma once
#include <vector>

#include "sparse/tree_layout.h"

namespace coppice {

// Finds the offsets and sizes of all nodes and fields; cells of nodes with temporaries have marks where these
// are tracked. Errors: kInvalidArgument for more than 2^48 bytes.
void find_sizes(const TreeDescription& description, std::vector<TreeNode>& nodes,
                std::vector<TreeField>& fields, bool tracks_temporaries);

// Returns where an array of a node's field may begin: at a multiple of this. A value of one cell alone needs
// no cache line.
uint64_t array_alignment(uint64_t bytes, uint64_t element_alignment, uint64_t cells);

}  // namespace coppice
