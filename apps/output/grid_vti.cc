// Writes a box of points (see grid_vti.h).
#include "apps/output/grid_vti.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/output/row_layouts.h"
#include "apps/output/size_text.h"
#include "apps/output/vtk_xml.h"
#include "core/atomic_file.h"
#include "core/error.h"

namespace coppice {
namespace {

uint64_t array_bytes(const PointBox& box, const GridArray& array) {
  return box.count() * static_cast<uint64_t>(array.components) * sizeof(float);
}

std::string header_text(const VtiGrid& grid, std::span<const GridArray> arrays) {
  const PointBox& box = grid.box;
  const std::string extent = box.is_empty() ? "0 -1 0 -1 0 -1"
                                            : fmt::format("{} {} {} {} {} {}", box.min.x(), box.max.x(),
                                                          box.min.y(), box.max.y(), box.min.z(), box.max.z());
  VtkHeader header("ImageData", fmt::format("WholeExtent=\"{}\" Origin=\"{} {} {}\" Spacing=\"{} {} {}\"",
                                            extent, grid.origin.x(), grid.origin.y(), grid.origin.z(),
                                            grid.spacing, grid.spacing, grid.spacing));
  header.add_time(grid.time_s);
  header.add(fmt::format("<Piece Extent=\"{}\">\n<PointData>\n", extent));
  for (const GridArray& a : arrays)
    header.add_array({a.name, "Float32", a.components, array_bytes(box, a), a.component_names});
  header.add("</PointData>\n</Piece>\n");
  return header.finish();
}

}  // namespace

uint64_t PointBox::count() const {
  const Eigen::Matrix<uint64_t, 3, 1> n = size().cast<uint64_t>();
  return n.x() * n.y() * n.z();
}

void PointBox::include(const Vec3i& point) {
  const bool is_first = is_empty();
  min = is_first ? point : Vec3i(min.cwiseMin(point));
  max = is_first ? point : Vec3i(max.cwiseMax(point));
}

size_t PointBox::index(const Vec3i& point) const {
  const Eigen::Matrix<size_t, 3, 1> at = (point - min).cast<size_t>(), n = size().cast<size_t>();
  return (at.z() * n.y() + at.y()) * n.x() + at.x();
}

void require_vti_size(const std::string& path, const PointBox& box, std::span<const GridArray> arrays,
                      uint64_t most_bytes) {
  uint64_t bytes = 0;
  for (const GridArray& array : arrays) bytes += array_bytes(box, array);
  if (bytes <= most_bytes) return;
  const Vec3i n = box.size();
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the box around the active cells has {} x {} x {} points, {} of values, expected at "
                  "most {}; an OpenVDB file has the active ones alone",
                  n.x(), n.y(), n.z(), size_text(bytes), size_text(most_bytes)),
      {path});
}

namespace {

// Returns the axis along which a box is cut: points that lie behind one another in the file are of one slab.
int cut_axis(const PointBox& box) { return box.size().z() > 1 ? 2 : 1; }

}  // namespace

PointBox slab_of(const PointBox& box, int rank, int n_ranks) {
  PointBox slab = box;
  const int axis = cut_axis(box), n = box.size()[axis];
  const auto end_of = [&](int r) { return static_cast<int>(int64_t{n} * r / n_ranks); };
  slab.min[axis] = box.min[axis] + end_of(rank);
  slab.max[axis] = box.min[axis] + end_of(rank + 1) - 1;
  return slab;
}

RowFile lay_out_vti(const VtiGrid& grid, std::span<const GridArray> arrays, const PointBox& slab) {
  const PointBox& box = grid.box;
  const int axis = cut_axis(box);
  const auto along = [&](const PointBox& b) { return static_cast<uint64_t>(b.size()[axis]); };
  const auto first = static_cast<uint64_t>(slab.is_empty() ? 0 : slab.min[axis] - box.min[axis]);
  RowFile file{{first, along(slab), along(box)}, {}, vtk_end()};
  std::string before = header_text(grid, arrays);
  for (const GridArray& array : arrays) {
    const uint64_t bytes = array_bytes(box, array);
    file.sections.push_back({before + vtk_size(bytes), bytes / std::max<uint64_t>(along(box), 1),
                             [array, slab](const RowSection::Write& write) {
                               std::vector<float> values(slab.count() *
                                                         static_cast<size_t>(array.components));
                               array.fill(slab, values);
                               write(std::as_bytes(std::span(values)));
                             }});
    before.clear();
  }
  if (arrays.empty()) file.end = before + file.end;
  return file;
}

void write_grid_vti(const std::string& path, const VtiGrid& grid, std::span<const GridArray> arrays,
                    uint64_t most_bytes) {
  require_vti_size(path, grid.box, arrays, most_bytes);
  AtomicFile file(path);
  write_rows(lay_out_vti(grid, arrays, grid.box), file);
  file.commit();
}

}  // namespace coppice
