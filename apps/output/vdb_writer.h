// Writes a grid's density as an OpenVDB volume, through a plugin that is loaded when first needed.
//
// OpenVDB and what it pulls in are 60 MB and more, so nothing but `libcoppice_vdb.so` links it (see
// vdb/vdb_plugin.h for its entry points). A build or an installation without the plugin works, and says once
// what is missing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/math.h"

namespace coppice {

// A further grid of a file.
struct VdbGrid {
  std::string name;
  int components = 1;             // or 3: a vector
  std::span<const float> values;  // as VdbVolume::values, [...][components]
};

// A sparse 3-D scalar field in cubic blocks. Voxel (i, j, k) has its centre at origin + voxel_size * (i, j,
// k).
struct VdbVolume {
  std::string grid_name = "density";
  float voxel_size = 0;           // in the world's unit
  Vec3f origin = Vec3f::Zero();   // world position of voxel (0, 0, 0)
  int block_size_log2 = 2;        // a block is 2^this voxels wide, 0 to 6
  std::span<const Vec3i> blocks;  // [n_blocks] lowest voxel of each block; no two overlap
  std::span<const float>
      values;  // [n_blocks][2^log2][2^log2][2^log2], x slowest, z fastest; 0 is "not active"
  std::span<const VdbGrid> more = {};  // with the same active voxels
};

// A volume file holds this, for tests and `info`.
struct VdbSummary {
  double sum = 0;  // over the active voxels; of vectors that of their first components
  int components = 1;
  Vec3d sums = Vec3d::Zero();  // of each component
  int64_t n_active = 0;        // active voxels
  Vec3i min = Vec3i::Zero();   // their bounds, both inclusive
  Vec3i max = Vec3i::Zero();
  Vec3d voxel_size = Vec3d::Zero();
  Vec3d origin = Vec3d::Zero();
};

class VdbWriter {
 public:
  // Returns where the plugin is looked for (plugins/plugin_library.h).
  static std::vector<std::string> plugin_candidates();

  // Loads the first candidate that exists. Does not throw: without one, or when it does not load,
  // is_available() is false and why_not() says why. The library stays loaded until the process ends.
  explicit VdbWriter(const std::vector<std::string>& candidates = plugin_candidates());

  bool is_available() const { return write_ != nullptr; }
  const std::string& why_not() const { return why_not_; }

  // Writes `path` whole or not at all and returns true; without the plugin logs a warning, the first time
  // only, and returns false. One thread at a time. Errors: kIo.
  bool write(const std::string& path, const VdbVolume& volume);
  // Writes the temporary of an AtomicFile, which may be another process's; `path` is that file's, for
  // messages. Errors: kUnavailable without the plugin, kIo.
  void write_temporary(const std::string& path, const std::string& temporary_path,
                       const VdbVolume& volume) const;
  // Logs that there are no volumes, and why.
  static void warn(const std::string& why_not);

  // Reads a volume back. Errors: kUnavailable without the plugin, kIo.
  VdbSummary read_summary(const std::string& path, const std::string& grid_name) const;

 private:
  void* write_ = nullptr;  // entry points of the plugin
  void* summarize_ = nullptr;
  std::string why_not_;
  bool has_warned_ = false;
};

}  // namespace coppice
