// Writes a box of points (see grid_vti.h).
#include "apps/output/grid_vti.h"

#include <fmt/format.h>

#include "apps/output/size_text.h"
#include "apps/output/vtk_xml.h"
#include "core/atomic_file.h"
#include "core/check.h"
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

void write_grid_vti(const std::string& path, const VtiGrid& grid, std::span<const GridArray> arrays,
                    uint64_t most_bytes) {
  require_vti_size(path, grid.box, arrays, most_bytes);
  AtomicFile file(path);
  file.write(header_text(grid, arrays));
  std::vector<float> values;
  for (const GridArray& array : arrays) {
    values.assign(grid.box.count() * static_cast<size_t>(array.components), 0.0f);
    array.fill(values);
    write_size(file, array_bytes(grid.box, array));
    file.write(std::as_bytes(std::span(values)));
  }
  write_vtk_end(file);
  file.commit();
}

}  // namespace coppice
