// Loads the OpenVDB plugin and calls it.
#include "apps/output/vdb_writer.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "apps/output/vdb/vdb_plugin.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

constexpr const char* kPluginName = "libcoppice_vdb.so";

using WriteFunction = decltype(&coppice_write_vdb);
using SummarizeFunction = decltype(&coppice_summarize_vdb);
using VersionFunction = decltype(&coppice_vdb_abi_version);

void check_volume(const VdbVolume& volume) {
  COPPICE_CHECK(std::isfinite(volume.voxel_size) && volume.voxel_size > 0, "voxel_size");
  COPPICE_CHECK(volume.origin.allFinite(), "origin");
  COPPICE_CHECK(volume.block_size_log2 >= 0 && volume.block_size_log2 <= 6, "block_size_log2");
  COPPICE_CHECK(volume.values.size() == volume.blocks.size() << (3 * volume.block_size_log2));
}

}  // namespace

std::vector<std::string> VdbWriter::plugin_candidates() {
  std::error_code status;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", status).parent_path();
  if (status) return {};
  std::vector<std::string> candidates;
  for (const char* where : {".", "../lib", "../lib/coppice"}) {
    candidates.push_back((folder / where / kPluginName).lexically_normal().string());
  }
  return candidates;
}

VdbWriter::VdbWriter(const std::vector<std::string>& candidates) {
  for (const std::string& path : candidates) {
    std::error_code status;
    if (!std::filesystem::exists(path, status)) continue;
    load(path);
    return;
  }
  why_not_ = fmt::format("built without OpenVDB: no {}", fmt::join(candidates, ", no "));
}

void VdbWriter::load(const std::string& path) {
  // Local, so that OpenVDB's many symbols meet no others.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why_not_ = fmt::format("the OpenVDB plugin does not load: {}", ::dlerror());
    return;
  }
  const auto version = reinterpret_cast<VersionFunction>(::dlsym(library, "coppice_vdb_abi_version"));
  if (version == nullptr || version() != COPPICE_VDB_ABI_VERSION) {
    why_not_ = fmt::format("the OpenVDB plugin {} belongs to another version of coppice", path);
    return;
  }
  write_ = ::dlsym(library, "coppice_write_vdb");
  summarize_ = ::dlsym(library, "coppice_summarize_vdb");
  COPPICE_CHECK(write_ != nullptr && summarize_ != nullptr, "{} lacks an entry point of its version", path);
}

bool VdbWriter::write(const std::string& path, const VdbVolume& volume) {
  check_volume(volume);
  if (!is_available()) {
    if (!has_warned_) log_warning("no .vdb files are written: {}", why_not_);
    has_warned_ = true;
    return false;
  }
  AtomicFile file(path);
  std::array<char, 512> error{};
  static_assert(sizeof(Vec3i) == 3 * sizeof(int32_t), "block origins are passed as i32[n][3]");
  const int failed = reinterpret_cast<WriteFunction>(write_)(
      file.temporary_path().c_str(), volume.grid_name.c_str(), volume.voxel_size, volume.origin.data(),
      reinterpret_cast<const int32_t*>(volume.blocks.data()), volume.values.data(),
      static_cast<int64_t>(volume.blocks.size()), volume.block_size_log2, error.data(), error.size());
  if (failed != 0)
    throw Error(ErrorCode::kIo, fmt::format("cannot write the volume: {}", error.data()), {path});
  file.commit();
  return true;
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
  return {raw.sum, raw.n_active, Vec3i(raw.min), Vec3i(raw.max), Vec3d(raw.voxel_size), Vec3d(raw.origin)};
}

}  // namespace coppice
