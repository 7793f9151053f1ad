// Reads PLY headers and scalars.
#include "apps/geometry/ply_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <sstream>

#include "core/error.h"

namespace coppice {
namespace {

static_assert(std::endian::native == std::endian::little, "ply_scalar_at() swaps big-endian files only");

class HeaderParser {
 public:
  HeaderParser(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  PlyHeader parse() {
    if (next_line() != "ply") fail("expected 'ply' in the first line");
    while (parse_line(next_line())) {
    }
    if (!has_format_) fail("the header has no 'format' line");
    header_.body_offset_bytes = position_;
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::kInvalidArgument) const {
    throw Error(code, message, {name_, header_.n_lines});
  }

  std::string next_line() {
    const size_t end = bytes_.find('\n', position_);
    ++header_.n_lines;
    if (end == std::string_view::npos) {
      fail(position_ == 0 ? "expected 'ply' in the first line"
                          : "the file ends inside the header (no 'end_header')",
           position_ == 0 ? ErrorCode::kInvalidArgument : ErrorCode::kDataLoss);
    }
    std::string line(bytes_.substr(position_, end - position_));
    position_ = end + 1;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    return line;
  }

  // Returns false at end_header.
  bool parse_line(const std::string& line) {
    std::istringstream words(line);
    std::string keyword;
    words >> keyword;
    if (keyword == "end_header") return false;
    if (keyword == "comment") {
      header_.comments.push_back(line.size() > 8 ? line.substr(8) : "");
    } else if (keyword == "format") {
      parse_format(words);
    } else if (keyword == "element") {
      parse_element(words);
    } else if (keyword == "property") {
      parse_property(words);
    } else if (keyword != "obj_info") {
      fail(fmt::format("unknown header word '{}'", keyword));
    }
    return true;
  }

  void parse_format(std::istringstream& words) {
    std::string format, version;
    words >> format >> version;
    if (format == "ascii") {
      header_.format = PlyFormat::kAscii;
    } else if (format == "binary_little_endian") {
      header_.format = PlyFormat::kBinaryLittleEndian;
    } else if (format == "binary_big_endian") {
      header_.format = PlyFormat::kBinaryBigEndian;
    } else {
      fail(fmt::format("unknown format '{}', expected ascii, binary_little_endian or binary_big_endian",
                       format));
    }
    if (version != "1.0") fail(fmt::format("unknown PLY version '{}', expected 1.0", version));
    has_format_ = true;
  }

  void parse_element(std::istringstream& words) {
    std::string name, count;
    words >> name >> count;
    PlyElement element{name, 0, {}};
    const auto [end, status] = std::from_chars(count.data(), count.data() + count.size(), element.count);
    if (count.empty() || status != std::errc() || end != count.data() + count.size() || element.count < 0) {
      fail(fmt::format("element '{}' has the count '{}', expected a whole number", name, count));
    }
    header_.elements.push_back(std::move(element));
  }

  PlyScalar parse_type(const std::string& word) const {
    static constexpr const char* kNames[][2] = {
        {"char", "int8"}, {"uchar", "uint8"}, {"short", "int16"},   {"ushort", "uint16"},
        {"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"double", "float64"}};
    for (int i = 0; i < 8; ++i) {
      if (word == kNames[i][0] || word == kNames[i][1]) return static_cast<PlyScalar>(i);
    }
    fail(fmt::format("unknown property type '{}'", word));
  }

  void parse_property(std::istringstream& words) {
    if (header_.elements.empty()) fail("a property stands before the first element");
    PlyProperty property;
    std::string type, count_type;
    words >> type;
    property.is_list = type == "list";
    if (property.is_list) {
      words >> count_type >> type;
      property.count_type = parse_type(count_type);
      if (property.count_type >= PlyScalar::kFloat32) fail("a list's count must have an integer type");
    }
    property.type = parse_type(type);
    words >> property.name;
    if (property.name.empty()) fail("a property has no name");
    header_.elements.back().properties.push_back(std::move(property));
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t position_ = 0;
  bool has_format_ = false;
  PlyHeader header_;
};

template <class T>
double load_scalar(const char* bytes, bool big_endian) {
  char buffer[sizeof(T)];
  std::memcpy(buffer, bytes, sizeof(T));
  if (big_endian) std::reverse(buffer, buffer + sizeof(T));
  T value;
  std::memcpy(&value, buffer, sizeof(T));
  return static_cast<double>(value);
}

}  // namespace

size_t ply_scalar_bytes(PlyScalar type) {
  constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 8};
  return kBytes[static_cast<int>(type)];
}

PlyHeader parse_ply_header(std::string_view bytes, const std::string& name) {
  return HeaderParser(bytes, name).parse();
}

double ply_scalar_at(const char* bytes, PlyScalar type, bool big_endian) {
  switch (type) {
    case PlyScalar::kInt8:
      return load_scalar<int8_t>(bytes, big_endian);
    case PlyScalar::kUint8:
      return load_scalar<uint8_t>(bytes, big_endian);
    case PlyScalar::kInt16:
      return load_scalar<int16_t>(bytes, big_endian);
    case PlyScalar::kUint16:
      return load_scalar<uint16_t>(bytes, big_endian);
    case PlyScalar::kInt32:
      return load_scalar<int32_t>(bytes, big_endian);
    case PlyScalar::kUint32:
      return load_scalar<uint32_t>(bytes, big_endian);
    case PlyScalar::kFloat32:
      return load_scalar<float>(bytes, big_endian);
    case PlyScalar::kFloat64:
      break;
  }
  return load_scalar<double>(bytes, big_endian);
}

}  // namespace coppice
