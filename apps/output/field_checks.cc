// Refuses what no file can have (see field_checks.h).
#include "apps/output/field_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"

namespace coppice::output {
namespace {

bool is_one_line(const std::string& name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 127; });
}

}  // namespace

void check_field(const std::string& path, const TreeRef& tree, uint32_t least_dims,
                 const FieldPlacement& placement) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why, {path}); };
  TreeStorage& storage = coppice::detail::tree_to_read(tree);
  storage.freeze();  // a tree has its dimensions from then on
  if (const uint32_t dims = storage.layout().dims(); dims < least_dims || dims > 3) {
    refuse(fmt::format("tree '{}' has {} dimension{}, expected {}", storage.options().name, dims,
                       dims == 1 ? "" : "s", least_dims == 3 ? "the 3 of a volume" : "2 or 3"));
  }
  if (!std::isfinite(placement.width) || placement.width <= 0)
    refuse(fmt::format("voxels of size {}, expected a positive number", placement.width));
  if (!placement.origin.allFinite()) {
    refuse(fmt::format("the origin ({}, {}, {}), expected finite numbers", placement.origin.x(),
                       placement.origin.y(), placement.origin.z()));
  }
  if (!is_one_line(placement.name))
    refuse("the grid's name is empty or has control characters, expected one line");
}

void check_finite_cells(const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                        std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error(ErrorCode::kNumeric,
                fmt::format("cell ({}, {}, {}) has the value {}, expected finite numbers", coords[i][0],
                            coords[i][1], coords[i][2], values[i]),
                {path});
  }
}

}  // namespace coppice::output
