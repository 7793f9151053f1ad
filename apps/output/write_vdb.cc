// Checks what a program gives, and cuts its cells into blocks.
#include "apps/output/write_vdb.h"

#include <fmt/format.h>

#include <map>

#include "apps/output/field_checks.h"
#include "core/error.h"

namespace coppice::output {
namespace {

constexpr int kLog2 = 3, kWidth = 1 << kLog2, kBlockCells = kWidth * kWidth * kWidth;  // as OpenVDB's leaves

struct Blocks {
  std::vector<Vec3i> origins;
  std::vector<float> values;  // [n_blocks][kBlockCells]
};

Blocks blocks_of(std::span<const std::array<int32_t, 3>> coords, std::span<const float> values) {
  Blocks blocks;
  std::map<std::array<int32_t, 3>, size_t> numbers;
  auto last = numbers.end();  // neighbours in memory are neighbours in space, mostly
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    std::array<int32_t, 3> origin, inside;
    for (int axis = 0; axis < 3; ++axis) {
      inside[axis] = coords[i][axis] & (kWidth - 1);
      origin[axis] = coords[i][axis] - inside[axis];
    }
    if (last == numbers.end() || last->first != origin) {
      bool is_new = false;
      std::tie(last, is_new) = numbers.try_emplace(origin, blocks.origins.size());
      if (is_new) {
        blocks.origins.emplace_back(origin[0], origin[1], origin[2]);
        blocks.values.resize(blocks.values.size() + kBlockCells, 0.0f);
      }
    }
    const int cell = (inside[0] * kWidth + inside[1]) * kWidth + inside[2];
    blocks.values[last->second * kBlockCells + cell] = values[i];
  }
  return blocks;
}

}  // namespace

namespace detail {

void check_volume(const VdbWriter& writer, const std::string& path, const TreeRef& tree,
                  const VdbOptions& options) {
  check_field(path, tree, 3, {options.grid_name, options.voxel_size, options.origin});
  if (!writer.is_available())
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot write the volume: {}", writer.why_not()),
                {path});
}

void write_cells(VdbWriter& writer, const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                 std::span<const float> values, const VdbOptions& options) {
  check_finite_cells(path, coords, values);
  const Blocks blocks = blocks_of(coords, values);
  writer.write(path,
               {options.grid_name, options.voxel_size, options.origin, kLog2, blocks.origins, blocks.values});
}

}  // namespace detail
}  // namespace coppice::output
