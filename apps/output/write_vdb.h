// Fields of 3-D trees as OpenVDB volumes.
//
//     output::wait_write_vdb("smoke.vdb", density, {.voxel_size = 0.01f});
//
// OpenVDB is in a plugin, libcoppice_vdb.so, that is loaded at the first call (vdb_writer.h).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/output/vdb_writer.h"
#include "core/half.h"
#include "core/math.h"
#include "sparse/active_cells.h"

namespace coppice::output {

struct VdbOptions {
  std::string grid_name = "density";  // one line
  float voxel_size = 1;          // of a cell of the node that the field is placed on, in the world's unit
  Vec3f origin = Vec3f::Zero();  // of the centre of cell (0, 0, 0), in the world
};

namespace detail {
// Errors: as wait_write_vdb(), but for those of the values and of writing.
void check_volume(const VdbWriter& writer, const std::string& path, const TreeRef& tree,
                  const VdbOptions& options);
// Writes the values at these cells. Errors: kNumeric, kIo.
void write_cells(VdbWriter& writer, const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                 std::span<const float> values, const VdbOptions& options);

template <class T>
void wait_write_vdb(VdbWriter& writer, const std::string& path, const Field<T>& field,
                    const VdbOptions& options) {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, Half>, "a volume is of numbers");
  check_volume(writer, path, field.tree, options);
  const ActiveCells<T> cells = wait_read_active(field);
  if constexpr (std::is_same_v<T, float>) {
    write_cells(writer, path, cells.coords, cells.values, options);
  } else {
    std::vector<float> values;
    values.reserve(cells.values.size());
    for (const T& value : cells.values) values.push_back(static_cast<float>(value));
    write_cells(writer, path, cells.coords, values, options);
  }
}
}  // namespace detail

// Writes the active cells of a field of numbers, as floats, after the launches before it. Cells whose value
// is zero are no active voxels: a volume is zero where it has none. The file appears whole or not at all, and
// replaces what was there. Cost: that of wait_read_active(), and 2 KiB for each 8 x 8 x 8 cells with values.
// Errors: those of wait_read_active(); with the path as their place kInvalidArgument for a tree of other than
// 3 dimensions, a voxel size that is not positive and finite, an origin that is not finite and a name that is
// not one line; kUnavailable without the plugin; kNumeric for a value that is not finite (the first one is
// named); kIo where the folder is missing or the disk is full.
template <class T>
void wait_write_vdb(const std::string& path, const Field<T>& field, const VdbOptions& options = {}) {
  VdbWriter writer;
  detail::wait_write_vdb(writer, path, field, options);
}

}  // namespace coppice::output
