// Packs attributes into PLY rows, and takes rows apart again.
#include "apps/output/particle_ply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "apps/geometry/ply_header.h"
#include "apps/output/particle_attributes.h"
#include "apps/output/row_layouts.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/read_file.h"

namespace coppice {
namespace {

std::string header_text(std::span<const PlyAttribute> attributes, int64_t n_particles,
                        const std::string& of) {
  std::string text = "ply\nformat binary_little_endian 1.0\ncomment written by coppice\n";
  if (!of.empty()) text += fmt::format("comment of {}\n", of);
  for (const PlyAttribute& a : attributes)
    text += fmt::format("comment attribute {} {}\n", a.name, file_components(a));
  text += fmt::format("element vertex {}\n", n_particles);
  for (const PlyAttribute& a : attributes) {
    for (int c = 0; c < file_components(a); ++c) {
      text +=
          fmt::format("property {} {}\n", type_name(a.type), property_name(a.name, file_components(a), c));
    }
  }
  return text + "end_header\n";
}

// Appends particle `i`'s row to `rows`.
void append_row(std::span<const PlyAttribute> attributes, int64_t i, std::string& rows) {
  for (const PlyAttribute& a : attributes) append_values(a, i, rows);
}

PlyType column_type(const PlyProperty& property, const std::string& path) {
  if (!property.is_list && property.type == PlyScalar::kFloat32) return PlyType::kFloat32;
  if (!property.is_list && property.type == PlyScalar::kUint8) return PlyType::kUint8;
  if (!property.is_list && property.type == PlyScalar::kInt32) return PlyType::kInt32;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("property '{}' is none of float, uchar and int", property.name), {path});
}

// The columns, empty yet, in the order of the properties.
std::vector<ParticleColumn> columns_of(const PlyHeader& header, const std::string& path) {
  std::vector<std::pair<std::string, int>> attributes;  // name, components
  for (const std::string& comment : header.comments) {
    std::istringstream words(comment);
    std::string keyword, name;
    int components = 0;
    if (words >> keyword >> name >> components && keyword == "attribute")
      attributes.emplace_back(name, components);
  }
  const std::vector<PlyProperty>& properties = header.elements[0].properties;
  const auto begins_at = [&](size_t first, const std::string& name, int components) {
    if (components < 1 || first + components > properties.size()) return false;
    for (int c = 0; c < components; ++c) {
      if (properties[first + c].name != property_name(name, components, c)) return false;
      if (properties[first + c].type != properties[first].type) return false;
    }
    return true;
  };
  attributes.emplace_back("position", 3);  // of files by others
  std::vector<ParticleColumn> columns;
  for (size_t first = 0; first < properties.size();) {
    ParticleColumn column{properties[first].name, column_type(properties[first], path), 1, {}};
    for (const auto& [name, components] : attributes) {
      if (!begins_at(first, name, components)) continue;
      column.name = name;
      column.components = components;
      break;
    }
    first += column.components;
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string read_bytes(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status))
    throw Error(ErrorCode::kNotFound, "no such particle file", {path});
  std::string bytes;
  if (const int error = read_file(path, bytes); error != 0)
    throw Error(ErrorCode::kIo, fmt::format("cannot read particles: {}", std::strerror(error)), {path});
  return bytes;
}

}  // namespace

RowFile lay_out_ply(const std::string& path, std::span<const PlyAttribute> attributes, const RowShare& share,
                    const std::string& of) {
  check_attributes(attributes, static_cast<int64_t>(share.n), path);
  if (of.find_first_of("\r\n") != std::string::npos)
    throw Error(ErrorCode::kInvalidArgument, "what the particles are of has several lines, expected one",
                {path});
  const std::vector<PlyAttribute> all(attributes.begin(), attributes.end());
  RowSection rows{header_text(attributes, static_cast<int64_t>(share.n_all), of), 0, {}};
  for (const PlyAttribute& a : attributes)
    rows.row_bytes += type_bytes(a.type) * static_cast<uint64_t>(file_components(a));
  rows.rows = rows_one_by_one(share.n, [all](int64_t i, std::string& bytes) { append_row(all, i, bytes); });
  return {share, {std::move(rows)}, ""};
}

void write_particles_ply(const std::string& path, std::span<const PlyAttribute> attributes,
                         int64_t n_particles, const std::string& of) {
  const auto n = static_cast<uint64_t>(n_particles);
  const RowFile rows = lay_out_ply(path, attributes, {0, n, n}, of);
  AtomicFile file(path);
  write_rows(rows, file);
  file.commit();
}

const ParticleColumn* ParticleTable::find(const std::string& name) const {
  const auto column =
      std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.name == name; });
  return column == columns.end() ? nullptr : &*column;
}

std::span<const float> ParticleTable::floats(const std::string& name) const {
  const ParticleColumn* column = find(name);
  if (column == nullptr)
    throw Error(ErrorCode::kNotFound, fmt::format("the particles have no attribute '{}'", name));
  if (column->type != PlyType::kFloat32) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("attribute '{}' is not of type float", name));
  }
  // A vector's storage comes from operator new, which aligns for every scalar.
  return {reinterpret_cast<const float*>(column->bytes.data()), column->bytes.size() / sizeof(float)};
}

ParticleTable read_particles_ply(const std::string& path) {
  const std::string bytes = read_bytes(path);
  const PlyHeader header = parse_ply_header(bytes, path);
  if (header.format != PlyFormat::kBinaryLittleEndian || header.elements.size() != 1 ||
      header.elements[0].name != "vertex") {
    throw Error(ErrorCode::kInvalidArgument,
                "expected binary_little_endian PLY with the one element 'vertex'", {path});
  }
  ParticleTable table{header.elements[0].count, columns_of(header, path), {}};
  for (const std::string& comment : header.comments)
    if (comment.starts_with("of ")) table.of = comment.substr(3);
  size_t row_bytes = 0;
  for (const ParticleColumn& column : table.columns) row_bytes += type_bytes(column.type) * column.components;
  const size_t body = bytes.size() - header.body_offset_bytes;
  if (row_bytes == 0 || body % row_bytes != 0 ||
      static_cast<int64_t>(body / row_bytes) != table.n_particles) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("{} bytes of particles, expected {} rows of {} bytes", body, table.n_particles,
                            row_bytes),
                {path});
  }
  size_t offset = header.body_offset_bytes;
  for (ParticleColumn& column : table.columns) {
    const size_t size = type_bytes(column.type) * column.components;
    column.bytes.resize(size * table.n_particles);
    for (int64_t i = 0; i < table.n_particles; ++i) {
      std::memcpy(&column.bytes[i * size], &bytes[offset + i * row_bytes], size);
    }
    offset += size;
  }
  return table;
}

}  // namespace coppice
