// Packs attributes into PLY rows, and takes rows apart again.
#include "apps/output/particle_ply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "apps/geometry/ply_header.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/read_file.h"

namespace coppice {
namespace {

size_t type_bytes(PlyType type) { return type == PlyType::kUint8 ? 1 : 4; }

const char* type_name(PlyType type) {
  return type == PlyType::kFloat32 ? "float" : type == PlyType::kUint8 ? "uchar" : "int";
}

// Returns the components in the file: a 2-D position has a z there.
int file_components(const PlyAttribute& a) { return a.name == "position" ? 3 : a.components; }

std::string property_name(const std::string& attribute, int components, int component) {
  if (attribute == "position") return std::string(1, static_cast<char>('x' + component));
  return components == 1 ? attribute : fmt::format("{}_{}", attribute, component);
}

// Returns whether a header's line can have it as a name.
bool is_word(const std::string& name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 127; });
}

// Throws kInvalidArgument for attributes that a file cannot have, or not together.
void check_attributes(std::span<const PlyAttribute> attributes, int64_t n_particles,
                      const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why, {path}); };
  COPPICE_CHECK(n_particles >= 0);
  bool has_position = false;
  std::set<std::string> properties;
  for (const PlyAttribute& a : attributes) {
    COPPICE_CHECK(a.components >= 1, "attribute {}", a.name);
    COPPICE_CHECK(a.data != nullptr || n_particles == 0, "attribute {}", a.name);
    if (!is_word(a.name)) refuse(fmt::format("an attribute is named '{}', expected one word", a.name));
    if (a.name == "position") {
      has_position = true;
      if (a.type != PlyType::kFloat32 || (a.components != 2 && a.components != 3)) {
        refuse(fmt::format("a position is {} of type {}, expected 2 or 3 of type float", a.components,
                           type_name(a.type)));
      }
    }
    for (int c = 0; c < file_components(a); ++c) {
      const std::string property = property_name(a.name, file_components(a), c);
      if (!properties.insert(property).second)
        refuse(fmt::format("attribute '{}' has the property '{}', which another one has", a.name, property));
    }
  }
  if (!has_position) refuse("particles need an attribute 'position'");
}

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
  for (const PlyAttribute& a : attributes) {
    const int64_t size = static_cast<int64_t>(type_bytes(a.type));
    const int64_t component_stride = a.component_stride_bytes != 0 ? a.component_stride_bytes : size;
    const int64_t particle_stride =
        a.particle_stride_bytes != 0 ? a.particle_stride_bytes : size * a.components;
    const char* particle = static_cast<const char*>(a.data) + i * particle_stride;
    for (int c = 0; c < a.components; ++c) rows.append(particle + c * component_stride, size);
    for (int c = a.components; c < file_components(a); ++c) rows.append(size, '\0');
  }
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

void write_particles_ply(const std::string& path, std::span<const PlyAttribute> attributes,
                         int64_t n_particles, const std::string& of) {
  check_attributes(attributes, n_particles, path);
  if (of.find_first_of("\r\n") != std::string::npos)
    throw Error(ErrorCode::kInvalidArgument, "what the particles are of has several lines, expected one",
                {path});
  constexpr size_t kChunkBytes = 1 << 20;
  AtomicFile file(path);
  std::string rows = header_text(attributes, n_particles, of);
  for (int64_t i = 0; i < n_particles; ++i) {
    append_row(attributes, i, rows);
    if (rows.size() < kChunkBytes) continue;
    file.write(rows);
    rows.clear();
  }
  file.write(rows);
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
