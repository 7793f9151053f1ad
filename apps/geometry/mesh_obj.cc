// The Wavefront OBJ reader.
//
// Ours and not tinyobjloader's (2.0rc10, Debian 12): that one reads `v nan 0 0` and `v x 0 0` as zeros
// without an error, and reports an index out of range as a warning only.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "apps/geometry/mesh.h"
#include "core/error.h"

namespace coppice {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The next word of `line`, which loses it; empty at the end of the line.
std::string_view next_word(std::string_view& line) {
  size_t begin = 0;
  while (begin < line.size() && is_blank(line[begin])) ++begin;
  size_t end = begin;
  while (end < line.size() && !is_blank(line[end])) ++end;
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

class ObjParser {
 public:
  ObjParser(std::string_view text, const std::string& name)
      : rest_(without_byte_order_mark(text, name)), name_(name) {}

  TriangleMesh parse() {
    std::string_view line;
    while (next_line(line)) {
      const std::string_view keyword = next_word(line);
      if (keyword == "v") parse_vertex(line);
      if (keyword == "f") parse_face(line);
      if (is_other_shape(keyword)) ++other_shapes_[std::string(keyword)];
    }
    if (mesh_.triangles.empty() && !vertices_.empty()) refuse_facelessness();
    check_indices();
    take_vertices(mesh_, vertices_);
    check_mesh(mesh_, name_);
    return std::move(mesh_);
  }

 private:
  // Points, lines, curves, surfaces, and the strips that some programs write, which OBJ does not have.
  static bool is_other_shape(std::string_view keyword) {
    constexpr std::array<std::string_view, 8> kKeywords{"p", "l", "curv", "curv2", "surf", "t", "q", "ts"};
    return std::ranges::find(kKeywords, keyword) != kKeywords.end();
  }

  [[noreturn]] void refuse_facelessness() const {
    std::string others;
    for (const auto& [keyword, count] : other_shapes_)
      others += fmt::format("{}{} '{}'", others.empty() ? ", and has " : ", ", count, keyword);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the mesh has no faces ('f'), which alone are read{}", others), {name_});
  }

  // Reads one logical line without its comment: a `\` at the end of a line joins it with the next.
  bool next_line(std::string_view& line) {
    if (rest_.empty()) return false;
    line_ += 1 + joined_;
    joined_ = 0;
    line = take_physical_line();
    if (line.empty() || line.back() != '\\') return true;
    buffer_.clear();
    while (!line.empty() && line.back() == '\\') {
      buffer_.append(line.substr(0, line.size() - 1)).push_back(' ');
      line = take_physical_line();
      ++joined_;
    }
    buffer_.append(line);
    line = buffer_;
    return true;
  }

  std::string_view take_physical_line() {
    const size_t end = std::min(rest_.find_first_of("\r\n"), rest_.size());
    std::string_view line = rest_.substr(0, end);
    const size_t size_of_end = rest_.substr(end).starts_with("\r\n") ? 2 : 1;
    rest_.remove_prefix(std::min(end + size_of_end, rest_.size()));
    line = line.substr(0, std::min(line.find('#'), line.size()));
    while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
    return line;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorCode::kInvalidArgument, message, {name_, line_});
  }

  double parse_number(std::string_view word) const {
    if (!word.empty() && word[0] == '+') word.remove_prefix(1);
    double value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || end != word.data() + word.size()) {
      fail(fmt::format("vertex {}: expected a number, found '{}'", vertices_.size(), word));
    }
    // from_chars leaves `value` alone when it over- or underflows; strtod says which.
    if (status == std::errc::result_out_of_range) value = std::strtod(std::string(word).c_str(), nullptr);
    return value;
  }

  void parse_vertex(std::string_view line) {
    Vec3d p;
    for (int axis = 0; axis < 3; ++axis) {
      const std::string_view word = next_word(line);
      if (word.empty()) fail(fmt::format("vertex {} has {} coordinates, expected 3", vertices_.size(), axis));
      p[axis] = parse_number(word);
    }
    if (const Vec3f single = p.cast<float>(); !single.allFinite()) {
      fail(fmt::format("vertex {} is not finite: ({}, {}, {})", vertices_.size(), single[0], single[1],
                       single[2]));
    }
    if (vertices_.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      fail("the mesh has more than 2^31 - 1 vertices");
    }
    vertices_.push_back(p);
  }

  // `7`, `7/1`, `7//3`, `7/1/3`; negative counts back from the newest vertex. Returns a zero-based index.
  int32_t parse_index(std::string_view word) const {
    const std::string_view number = word.substr(0, std::min(word.find('/'), word.size()));
    int64_t index = 0;
    const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (number.empty() || status != std::errc() || end != number.data() + number.size()) {
      fail(fmt::format("expected a vertex index, found '{}'", word));
    }
    if (index == 0) fail("vertex index 0 in a face, expected 1 or more (or negative)");
    const int64_t zero_based = index > 0 ? index - 1 : static_cast<int64_t>(vertices_.size()) + index;
    if (zero_based < 0 || zero_based > std::numeric_limits<int32_t>::max()) {
      fail(fmt::format("vertex index {} is out of range: {} vertices so far", index, vertices_.size()));
    }
    return static_cast<int32_t>(zero_based);
  }

  void parse_face(std::string_view line) {
    corners_.clear();
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
      corners_.push_back(parse_index(word));
    if (corners_.size() < 3) fail(fmt::format("a face has {} corners, expected 3 or more", corners_.size()));
    append_polygon(corners_, mesh_.triangles);
    triangle_lines_.resize(mesh_.triangles.size(), line_);
  }

  // Positive indices may name vertices further down, so they are checked at the end.
  void check_indices() const {
    for (size_t t = 0; t < mesh_.triangles.size(); ++t) {
      const int64_t largest = mesh_.triangles[t].maxCoeff();
      if (largest < static_cast<int64_t>(vertices_.size())) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("vertex index {} is out of range: the file has {} vertices", largest + 1,
                              vertices_.size()),
                  {name_, triangle_lines_[t]});
    }
  }

  std::string_view rest_;
  const std::string& name_;
  std::string buffer_;  // a line that was joined from several
  int line_ = 0;
  int joined_ = 0;
  TriangleMesh mesh_;  // its vertices are taken at the end
  std::vector<Vec3d> vertices_;
  std::vector<int32_t> corners_;                 // of the face that is read
  std::vector<int> triangle_lines_;              // line of each triangle's face
  std::map<std::string, int64_t> other_shapes_;  // the number of lines of each keyword
};

}  // namespace

TriangleMesh parse_obj(std::string_view text, const std::string& name) {
  return ObjParser(text, name).parse();
}

}  // namespace coppice
