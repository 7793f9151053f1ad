// The PLY mesh reader: elements `vertex` (x, y, z), `face` and `tristrips` (vertex_indices), all others
// skipped.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "apps/geometry/mesh.h"
#include "apps/geometry/ply_header.h"
#include "core/error.h"

namespace coppice {
namespace {

class PlyMeshParser {
 public:
  PlyMeshParser(std::string_view bytes, const std::string& name)
      : bytes_(without_byte_order_mark(bytes, name)), name_(name), header_(parse_ply_header(bytes_, name)) {
    position_ = header_.body_offset_bytes;
    line_ = header_.format == PlyFormat::kAscii ? header_.n_lines + 1 : 0;
  }

  TriangleMesh parse() {
    for (const PlyElement& element : header_.elements) {
      element_ = &element;
      if (element.properties.empty()) continue;  // takes no bytes however many there are
      if (element.name == "vertex") {
        parse_vertices();
      } else if (element.name == "face" || element.name == "tristrips") {
        parse_faces();
      } else {
        for (row_ = 0; row_ < element.count; ++row_) {
          for (const PlyProperty& property : element.properties) skip(property);
        }
      }
    }
    check_faces();
    take_vertices(mesh_, vertices_);
    check_mesh(mesh_, name_);
    return std::move(mesh_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::kInvalidArgument) const {
    throw Error(code, message, {name_, line_});
  }
  [[noreturn]] void fail_truncated() const {
    fail(fmt::format("the file ends in {} {} of {} promised", element_->name, row_, element_->count),
         ErrorCode::kDataLoss);
  }

  double read(PlyScalar type) {
    if (header_.format == PlyFormat::kAscii) return read_ascii();
    const size_t n = ply_scalar_bytes(type);
    if (bytes_.size() - position_ < n) fail_truncated();
    const double value =
        ply_scalar_at(&bytes_[position_], type, header_.format == PlyFormat::kBinaryBigEndian);
    position_ += n;
    return value;
  }

  double read_ascii() {
    while (position_ < bytes_.size() && std::isspace(static_cast<unsigned char>(bytes_[position_]))) {
      line_ += bytes_[position_++] == '\n';
    }
    if (position_ == bytes_.size()) fail_truncated();
    const size_t begin = position_;
    while (position_ < bytes_.size() && !std::isspace(static_cast<unsigned char>(bytes_[position_])))
      ++position_;
    std::string_view word = bytes_.substr(begin, position_ - begin);
    if (word[0] == '+') word.remove_prefix(1);
    double value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || end != word.data() + word.size()) {
      fail(fmt::format("{} {}: expected a number, found '{}'", element_->name, row_, word));
    }
    if (status == std::errc::result_out_of_range) value = std::strtod(std::string(word).c_str(), nullptr);
    return value;
  }

  int64_t read_list_size(const PlyProperty& property) {
    const double size = read(property.count_type);
    // A list cannot be longer than the bytes left, which bounds what a broken file makes us do.
    if (!(size >= 0) || size != std::floor(size)) {
      fail(fmt::format("{} {}: a list of {} items", element_->name, row_, size));
    }
    if (size > static_cast<double>(bytes_.size() - position_)) fail_truncated();
    return static_cast<int64_t>(size);
  }

  void skip(const PlyProperty& property) {
    const int64_t n = property.is_list ? read_list_size(property) : 1;
    for (int64_t i = 0; i < n; ++i) read(property.type);
  }

  void parse_vertices() {
    int axes_found = 0;
    std::vector<int> axis_of_property;  // -1: not a coordinate
    for (const PlyProperty& property : element_->properties) {
      const bool is_axis = !property.is_list && property.name.size() == 1 && property.name[0] >= 'x' &&
                           property.name[0] <= 'z';
      axis_of_property.push_back(is_axis ? property.name[0] - 'x' : -1);
      if (is_axis) axes_found |= 1 << (property.name[0] - 'x');
    }
    if (axes_found != 7) fail("element vertex lacks one of the properties x, y, z");
    if (element_->count > std::numeric_limits<int32_t>::max())
      fail("the mesh has more than 2^31 - 1 vertices");
    for (row_ = 0; row_ < element_->count; ++row_) {
      Vec3d p = Vec3d::Zero();
      for (size_t i = 0; i < axis_of_property.size(); ++i) {
        const PlyProperty& property = element_->properties[i];
        if (axis_of_property[i] < 0) {
          skip(property);
        } else {
          p[axis_of_property[i]] = read(property.type);
        }
      }
      if (const Vec3f single = p.cast<float>(); !single.allFinite()) {
        fail(fmt::format("vertex {} is not finite: ({}, {}, {})", row_, single[0], single[1], single[2]));
      }
      vertices_.push_back(p);
    }
  }

  void parse_faces() {
    const auto is_indices = [](const PlyProperty& property) {
      return property.is_list && (property.name == "vertex_indices" || property.name == "vertex_index");
    };
    if (std::none_of(element_->properties.begin(), element_->properties.end(), is_indices)) {
      fail(fmt::format("element {} lacks the list property vertex_indices", element_->name));
    }
    for (row_ = 0; row_ < element_->count; ++row_) {
      for (const PlyProperty& property : element_->properties) {
        if (is_indices(property) && element_->name == "face") {
          parse_face(property);
        } else if (is_indices(property)) {
          parse_strips(property);
        } else {
          skip(property);
        }
      }
    }
  }

  void parse_face(const PlyProperty& property) {
    const int64_t corners = read_list_size(property);
    if (corners < 3) fail(fmt::format("face {} has {} corners, expected 3 or more", row_, corners));
    corners_.clear();
    for (int64_t corner = 0; corner < corners; ++corner)
      corners_.push_back(checked_index(read(property.type)));
    append_polygon(corners_, mesh_.triangles);
    triangle_places_.resize(mesh_.triangles.size(), {element_, row_});
  }

  int32_t checked_index(double index) const {
    if (!(index >= 0 && index <= std::numeric_limits<int32_t>::max()) || index != std::floor(index))
      fail(fmt::format("{} {}: vertex index {} is out of range", element_->name, row_, index));
    return static_cast<int32_t>(index);
  }

  // One list holds any number of strips, each of which -1 ends.
  void parse_strips(const PlyProperty& property) {
    const int64_t n = read_list_size(property);
    corners_.clear();
    for (int64_t i = 0; i < n; ++i) {
      const double index = read(property.type);
      if (index != -1) corners_.push_back(checked_index(index));
      if (index != -1 && i + 1 < n) continue;
      append_strip(corners_, mesh_.triangles);
      corners_.clear();
    }
    triangle_places_.resize(mesh_.triangles.size(), {element_, row_});
  }

  // Faces may stand before the vertices, so their indices are checked at the end.
  void check_faces() {
    line_ = 0;
    for (size_t t = 0; t < mesh_.triangles.size(); ++t) {
      if (mesh_.triangles[t].maxCoeff() < static_cast<int64_t>(vertices_.size())) continue;
      const auto& [element, row] = triangle_places_[t];
      fail(fmt::format("{} {}: vertex index {} is out of range: the file has {} vertices", element->name, row,
                       mesh_.triangles[t].maxCoeff(), vertices_.size()));
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  PlyHeader header_;
  size_t position_ = 0;
  int line_ = 0;  // of an ascii body; 0 in a binary one
  const PlyElement* element_ = nullptr;
  int64_t row_ = 0;
  TriangleMesh mesh_;  // its vertices are taken at the end
  std::vector<Vec3d> vertices_;
  std::vector<int32_t> corners_;  // of the face or strip that is read
  std::vector<std::pair<const PlyElement*, int64_t>>
      triangle_places_;  // the row that each triangle is cut from
};

}  // namespace

TriangleMesh parse_ply(std::string_view bytes, const std::string& name) {
  return PlyMeshParser(bytes, name).parse();
}

}  // namespace coppice
