// Writes points, their values and their cells (see particle_vtu.h).
#include "apps/output/particle_vtu.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/output/particle_attributes.h"
#include "apps/output/row_layouts.h"
#include "apps/output/vtk_xml.h"
#include "core/atomic_file.h"

namespace coppice {
namespace {

constexpr uint8_t kVertex = 1;  // VTK_VERTEX

template <class T>
void append_number(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string_view vtk_type(PlyType type) {
  return type == PlyType::kFloat32 ? "Float32" : type == PlyType::kUint8 ? "UInt8" : "Int32";
}

uint64_t row_bytes(const PlyAttribute& a) {
  return type_bytes(a.type) * static_cast<uint64_t>(file_components(a));
}

std::string header_text(std::span<const PlyAttribute> attributes, int64_t n, const VtuOptions& options) {
  const uint64_t count = static_cast<uint64_t>(n);
  VtkHeader header("UnstructuredGrid");
  header.add_time(options.time_s);
  header.add(fmt::format("<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n<PointData>\n", n, n));
  const auto add = [&](const PlyAttribute& a) {
    const auto names = options.component_names.find(a.name);
    header.add_array({a.name, vtk_type(a.type), file_components(a), count * row_bytes(a),
                      names == options.component_names.end() ? std::vector<std::string>() : names->second});
  };
  for (const PlyAttribute& a : attributes)
    if (a.name != "position") add(a);
  header.add("</PointData>\n<Points>\n");
  for (const PlyAttribute& a : attributes)
    if (a.name == "position") add(a);
  header.add("</Points>\n<Cells>\n");
  header.add_array({"connectivity", "Int64", 1, count * sizeof(int64_t)});
  header.add_array({"offsets", "Int64", 1, count * sizeof(int64_t)});
  header.add_array({"types", "UInt8", 1, count});
  header.add("</Cells>\n</Piece>\n");
  return header.finish();
}

}  // namespace

RowFile lay_out_vtu(const std::string& path, std::span<const PlyAttribute> attributes, const RowShare& share,
                    const VtuOptions& options) {
  check_attributes(attributes, static_cast<int64_t>(share.n), path);
  RowFile file{share, {}, vtk_end()};
  std::string before = header_text(attributes, static_cast<int64_t>(share.n_all), options);
  const auto add = [&](uint64_t row_bytes, auto append) {
    file.sections.push_back(
        {before + vtk_size(share.n_all * row_bytes), row_bytes, rows_one_by_one(share.n, append)});
    before.clear();
  };
  const auto add_values = [&](const PlyAttribute& a) {
    add(row_bytes(a), [a](int64_t i, std::string& bytes) { append_values(a, i, bytes); });
  };
  for (const PlyAttribute& a : attributes)
    if (a.name != "position") add_values(a);
  add_values(*std::ranges::find(attributes, "position", &PlyAttribute::name));
  for (const uint64_t first : {share.first, share.first + 1}) {
    add(sizeof(int64_t),
        [first](int64_t i, std::string& bytes) { append_number(static_cast<int64_t>(first) + i, bytes); });
  }
  add(1, [](int64_t, std::string& bytes) { append_number(kVertex, bytes); });
  return file;
}

void write_particles_vtu(const std::string& path, std::span<const PlyAttribute> attributes,
                         int64_t n_particles, const VtuOptions& options) {
  const auto n = static_cast<uint64_t>(n_particles);
  const RowFile rows = lay_out_vtu(path, attributes, {0, n, n}, options);
  AtomicFile file(path);
  write_rows(rows, file);
  file.commit();
}

}  // namespace coppice
