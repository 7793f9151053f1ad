// Fields of 2-D and 3-D trees as VTK files, which ParaView opens: an ImageData.
//
//     output::wait_write_vti("smoke.vti", density, {.spacing = 0.01f});
//
// The file has the box around the active cells, with zeros where none is: see VtiOptions::most_bytes, and
// write_vdb.h for files of the active cells alone. The layout of the file is in grid_vti.h.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/output/grid_vti.h"
#include "core/half.h"
#include "core/math.h"
#include "sparse/active_cells.h"

namespace coppice::output {

struct VtiOptions {
  std::string array_name = "density";  // one line
  float spacing = 1;             // of the cells of the node that the field is placed on, in the world's unit
  Vec3f origin = Vec3f::Zero();  // of the centre of cell (0, 0, 0), in the world
  std::optional<double> time_s;  // of the frame
  uint64_t most_bytes = kMostVtiBytes;  // a larger file is refused before anything is written
};

namespace detail {
// Errors: as wait_write_vti(), but for those of the values, of the size and of writing.
void check_image(const std::string& path, const TreeRef& tree, const VtiOptions& options);
// Writes the values at these cells. Errors: kNumeric, kInvalidArgument for the size, kIo.
void write_image(const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                 std::span<const float> values, const VtiOptions& options);
}  // namespace detail

// Writes the active cells of a field of numbers, as floats at the cells' centres, after the launches before
// it. The file appears whole or not at all, and replaces what was there. Cost: that of wait_read_active(),
// and 4 bytes for each cell of the box. Errors: those of wait_read_active(); with the path as their place
// kInvalidArgument for a tree of other than 2 or 3 dimensions, a spacing that is not positive and finite, an
// origin that is not finite, a name that is not one line, and a box that is too large; kNumeric for a value
// that is not finite (the first one is named); kIo where the folder is missing or the disk is full.
template <class T>
void wait_write_vti(const std::string& path, const Field<T>& field, const VtiOptions& options = {}) {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, Half>, "an image is of numbers");
  detail::check_image(path, field.tree, options);
  const ActiveCells<T> cells = wait_read_active(field);
  std::vector<float> values;
  values.reserve(cells.values.size());
  for (const T& value : cells.values) values.push_back(static_cast<float>(value));
  detail::write_image(path, cells.coords, values, options);
}

}  // namespace coppice::output
