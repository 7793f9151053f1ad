// Checks what a program gives, and puts its cells into a box.
#include "apps/output/write_vti.h"

#include "apps/output/field_checks.h"

namespace coppice::output::detail {

void check_image(const std::string& path, const TreeRef& tree, const VtiOptions& options) {
  check_field(path, tree, 2, {options.array_name, options.spacing, options.origin});
}

void write_image(const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                 std::span<const float> values, const VtiOptions& options) {
  check_finite_cells(path, coords, values);
  VtiGrid grid{{}, options.origin, options.spacing, options.time_s};
  for (const std::array<int32_t, 3>& at : coords) grid.box.include(Vec3i(at.data()));
  const auto fill = [&](const PointBox& slab, std::span<float> to) {
    for (size_t i = 0; i < coords.size(); ++i)
      if (const Vec3i at(coords[i].data()); slab.has(at)) to[slab.index(at)] = values[i];
  };
  const GridArray array{options.array_name, 1, {}, fill};
  write_grid_vti(path, grid, std::span(&array, 1), options.most_bytes);
}

}  // namespace coppice::output::detail
