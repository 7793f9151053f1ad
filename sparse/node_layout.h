// Builds the constant description of a node that kernels get (sparse/device/layout.h): the way to it from the
// root.
#pragma once
#include "sparse/tree_layout.h"

namespace coppice {

// Takes the nodes' sizes to be known, and their spans to be at most 2^31. Leaves out the nodes below, which
// follow from those of others. Errors: kInvalidArgument for an origin or a domain that does not fit.
device::NodeLayout build_node_layout(const TreeLayout& tree, uint32_t node);

}  // namespace coppice
