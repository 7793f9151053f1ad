// Cells by their coordinates, for the runtime's own launches.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "gpu/stream.h"
#include "sparse/tree.h"

namespace coppice {

// Returns coordinates as kernels take them: i32[n][3], missing leading axes 0.
std::vector<int32_t> flatten(const std::vector<std::array<int32_t, 3>>& coords, uint32_t dims);

// Returns the launch that deactivates cells of a node that can be inactive, at coordinates within its domain.
Launch make_deactivation(const TreeRef& tree, uint32_t node,
                         const std::vector<std::array<int32_t, 3>>& coords);

}  // namespace coppice
