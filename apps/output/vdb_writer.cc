// Loads the OpenVDB plugin and calls it.
#include "apps/output/vdb_writer.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "apps/output/vdb/vdb_plugin.h"
#include "apps/plugins/plugin_library.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

constexpr PluginKind kPlugin{.file_name = "libcoppice_vdb.so",
                             .name = "OpenVDB",
                             .needs = "OpenVDB",
                             .version_function = "coppice_vdb_abi_version",
                             .version = COPPICE_VDB_ABI_VERSION};

using WriteFunction = decltype(&coppice_write_vdb);
using SummarizeFunction = decltype(&coppice_summarize_vdb);

void check_volume(const VdbVolume& volume) {
  COPPICE_CHECK(std::isfinite(volume.voxel_size) && volume.voxel_size > 0, "voxel_size");
  COPPICE_CHECK(volume.origin.allFinite(), "origin");
  COPPICE_CHECK(volume.block_size_log2 >= 0 && volume.block_size_log2 <= 6, "block_size_log2");
  COPPICE_CHECK(volume.values.size() == volume.blocks.size() << (3 * volume.block_size_log2));
  for (const VdbGrid& grid : volume.more) {
    COPPICE_CHECK(grid.components == 1 || grid.components == 3, "grid {}", grid.name);
    COPPICE_CHECK(grid.values.size() == volume.values.size() * static_cast<size_t>(grid.components),
                  "grid {}", grid.name);
  }
}

}  // namespace

std::vector<std::string> VdbWriter::plugin_candidates() { return PluginLibrary::candidates(kPlugin); }

VdbWriter::VdbWriter(const std::vector<std::string>& candidates) {
  const PluginLibrary plugin(kPlugin, candidates);
  why_not_ = plugin.why_not();
  if (!plugin.is_loaded()) return;
  write_ = plugin.entry_point("coppice_write_vdb");
  summarize_ = plugin.entry_point("coppice_summarize_vdb");
}

bool VdbWriter::write(const std::string& path, const VdbVolume& volume) {
  check_volume(volume);
  if (!is_available()) {
    if (!has_warned_) warn(why_not_);
    has_warned_ = true;
    return false;
  }
  AtomicFile file(path);
  write_temporary(path, file.temporary_path(), volume);
  file.commit();
  return true;
}

void VdbWriter::warn(const std::string& why_not) { log_warning("no .vdb files are written: {}", why_not); }

void VdbWriter::write_temporary(const std::string& path, const std::string& temporary_path,
                                const VdbVolume& volume) const {
  check_volume(volume);
  if (!is_available())
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot write the volume: {}", why_not_), {path});
  std::array<char, 512> error{};
  static_assert(sizeof(Vec3i) == 3 * sizeof(int32_t), "block origins are passed as i32[n][3]");
  std::vector<CoppiceVdbGrid> grids{{volume.grid_name.c_str(), 1, volume.values.data()}};
  for (const VdbGrid& grid : volume.more)
    grids.push_back({grid.name.c_str(), grid.components, grid.values.data()});
  const int failed = reinterpret_cast<WriteFunction>(write_)(
      temporary_path.c_str(), grids.data(), static_cast<int64_t>(grids.size()), volume.voxel_size,
      volume.origin.data(), reinterpret_cast<const int32_t*>(volume.blocks.data()),
      static_cast<int64_t>(volume.blocks.size()), volume.block_size_log2, error.data(), error.size());
  if (failed != 0)
    throw Error(ErrorCode::kIo, fmt::format("cannot write the volume: {}", error.data()), {path});
}

VdbSummary VdbWriter::read_summary(const std::string& path, const std::string& grid_name) const {
  if (!is_available())
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot read the volume: {}", why_not_), {path});
  CoppiceVdbSummary raw{};
  std::array<char, 512> error{};
  if (reinterpret_cast<SummarizeFunction>(summarize_)(path.c_str(), grid_name.c_str(), &raw, error.data(),
                                                      error.size()) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("cannot read the volume: {}", error.data()), {path});
  }
  return {raw.sum[0],     raw.components, Vec3d(raw.sum),        raw.n_active,
          Vec3i(raw.min), Vec3i(raw.max), Vec3d(raw.voxel_size), Vec3d(raw.origin)};
}

}  // namespace coppice
