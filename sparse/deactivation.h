// Deactivation of cells by their coordinates, as a launch.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "gpu/stream.h"
#include "sparse/tree.h"

namespace coppice {

// Returns the launch that deactivates cells of a node that can be inactive, at coordinates within its domain.
Launch make_deactivation(const TreeRef& tree, uint32_t node,
                         const std::vector<std::array<int32_t, 3>>& coords);

}  // namespace coppice
