// The header of a PLY file: what follows it, element by element. Shared by the mesh reader and the particle
// reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

enum class PlyFormat { kAscii, kBinaryLittleEndian, kBinaryBigEndian };

enum class PlyScalar { kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kFloat32, kFloat64 };

// 1, 2, 4 or 8.
size_t ply_scalar_bytes(PlyScalar type);

struct PlyProperty {
  std::string name;
  PlyScalar type = PlyScalar::kFloat32;  // of a list: of its items
  bool is_list = false;
  PlyScalar count_type = PlyScalar::kUint8;  // lists only
};

struct PlyElement {
  std::string name;
  int64_t count = 0;
  std::vector<PlyProperty> properties;
};

struct PlyHeader {
  PlyFormat format = PlyFormat::kAscii;
  std::vector<PlyElement> elements;   // in the order of the body
  std::vector<std::string> comments;  // without the word `comment`
  size_t body_offset_bytes = 0;       // of the first byte behind end_header's line
  int n_lines = 0;                    // lines of the header
};

// Throws kInvalidArgument (or kDataLoss when end_header is missing) with `name` and the line.
PlyHeader parse_ply_header(std::string_view bytes, const std::string& name);

// The scalar at `bytes` (which holds at least its size), as a double: exact for every PLY type.
double ply_scalar_at(const char* bytes, PlyScalar type, bool big_endian);

}  // namespace coppice
