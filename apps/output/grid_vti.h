// Values on a regular grid as a VTK file that ParaView opens: an ImageData, raw and little endian.
//
// A file has a box of points, those without a value 0, so that it grows with the box and not with what is
// in it: its size has a bound. Point (i, j, k) is at origin + spacing * (i, j, k). Each array is appended as
// f32[n_points][components], x fastest.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/math.h"

namespace coppice {

// Both corners are in the box; it is empty where a component of `max` is less than that of `min`.
struct PointBox {
  Vec3i min = Vec3i::Zero(), max = Vec3i::Constant(-1);

  bool is_empty() const { return (max.array() < min.array()).any(); }
  // Returns the points along each axis.
  Vec3i size() const { return is_empty() ? Vec3i::Zero() : Vec3i(max - min + Vec3i::Ones()); }
  uint64_t count() const;
  void include(const Vec3i& point);
  bool has(const Vec3i& point) const {
    return (point.array() >= min.array()).all() && (point.array() <= max.array()).all();
  }
  // Returns the place of a point of the box in an array.
  size_t index(const Vec3i& point) const;
};

struct GridArray {
  std::string name;  // without control characters
  int components = 1;
  std::vector<std::string> component_names = {};  // none, or one for each
  // Fills an array of zeros, f32[slab.count()][components], for a part of the file's box, or all of it;
  // points that are not in it are left out. It is called once, when the array is written, so that one array
  // at a time is in memory.
  std::function<void(const PointBox& slab, std::span<float>)> fill;
};

struct VtiGrid {
  PointBox box;
  Vec3f origin = Vec3f::Zero();
  float spacing = 1;
  std::optional<double> time_s;  // of the frame
};

inline constexpr uint64_t kMostVtiBytes = uint64_t{4} << 30;

// Refuses a file that would be larger than `most_bytes`, with kInvalidArgument, before anything is written.
void require_vti_size(const std::string& path, const PointBox& box, std::span<const GridArray> arrays,
                      uint64_t most_bytes = kMostVtiBytes);
// Writes the file whole or not at all. Errors: those of require_vti_size(), kIo.
void write_grid_vti(const std::string& path, const VtiGrid& grid, std::span<const GridArray> arrays,
                    uint64_t most_bytes = kMostVtiBytes);

}  // namespace coppice
