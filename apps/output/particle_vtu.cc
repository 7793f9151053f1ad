// Writes points, their values and their cells (see particle_vtu.h).
#include "apps/output/particle_vtu.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/output/particle_attributes.h"
#include "apps/output/vtk_xml.h"
#include "core/atomic_file.h"

namespace coppice {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr uint8_t kVertex = 1;  // VTK_VERTEX

// Writes an array of `n` rows; append(i, bytes) adds the bytes of row i.
template <class Append>
void write_rows(AtomicFile& file, int64_t n, uint64_t row_bytes, Append append) {
  write_size(file, static_cast<uint64_t>(n) * row_bytes);
  std::string bytes;
  for (int64_t i = 0; i < n; ++i) {
    append(i, bytes);
    if (bytes.size() < kChunkBytes) continue;
    file.write(bytes);
    bytes.clear();
  }
  file.write(bytes);
}

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

void write_particles_vtu(const std::string& path, std::span<const PlyAttribute> attributes, int64_t n,
                         const VtuOptions& options) {
  check_attributes(attributes, n, path);
  AtomicFile file(path);
  file.write(header_text(attributes, n, options));
  const auto write_values = [&](const PlyAttribute& a) {
    write_rows(file, n, row_bytes(a), [&](int64_t i, std::string& bytes) { append_values(a, i, bytes); });
  };
  for (const PlyAttribute& a : attributes)
    if (a.name != "position") write_values(a);
  write_values(*std::ranges::find(attributes, "position", &PlyAttribute::name));
  for (const int64_t first : {0, 1}) {
    write_rows(file, n, sizeof(int64_t),
               [&](int64_t i, std::string& bytes) { append_number(first + i, bytes); });
  }
  write_rows(file, n, 1, [](int64_t, std::string& bytes) { append_number(kVertex, bytes); });
  write_vtk_end(file);
  file.commit();
}

}  // namespace coppice
