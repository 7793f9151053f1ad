// Checks what a program gives, and cuts its cells into blocks.
#include "apps/output/write_vdb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"

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

bool is_one_line(const std::string& name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 127; });
}

}  // namespace

namespace detail {

void check_volume(const VdbWriter& writer, const std::string& path, const TreeRef& tree,
                  const VdbOptions& options) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why, {path}); };
  TreeStorage& storage = coppice::detail::tree_to_read(tree);
  storage.freeze();  // a tree has its dimensions from then on
  if (const uint32_t dims = storage.layout().dims(); dims != 3) {
    refuse(fmt::format("tree '{}' has {} dimension{}, expected the 3 of a volume", storage.options().name,
                       dims, dims == 1 ? "" : "s"));
  }
  if (!std::isfinite(options.voxel_size) || options.voxel_size <= 0)
    refuse(fmt::format("voxels of size {}, expected a positive number", options.voxel_size));
  if (!options.origin.allFinite()) {
    refuse(fmt::format("the origin ({}, {}, {}), expected finite numbers", options.origin.x(),
                       options.origin.y(), options.origin.z()));
  }
  if (!is_one_line(options.grid_name))
    refuse("the grid's name is empty or has control characters, expected one line");
  if (!writer.is_available())
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot write the volume: {}", writer.why_not()),
                {path});
}

void write_cells(VdbWriter& writer, const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                 std::span<const float> values, const VdbOptions& options) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw Error(ErrorCode::kNumeric,
                fmt::format("cell ({}, {}, {}) has the value {}, expected finite numbers", coords[i][0],
                            coords[i][1], coords[i][2], values[i]),
                {path});
  }
  const Blocks blocks = blocks_of(coords, values);
  writer.write(path,
               {options.grid_name, options.voxel_size, options.origin, kLog2, blocks.origins, blocks.values});
}

}  // namespace detail
}  // namespace coppice::output
