// The list of environment variables, and what is checked of them (see environment.h).
#include "apps/cli/environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "apps/cli/assets.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/codegen_options.h"
#include "gpu/jit/kernel_cache.h"
#include "gpu/simt/environment.h"
#include "sparse/temporary_places.h"

namespace coppice::cli {
namespace {

constexpr EnvironmentVariable kVariables[] = {
    {"COPPICE_LOG", "debug|info|warning|error|off", "the least important lines that are logged"},
    {"COPPICE_ASSETS", "DIR", "scenes and meshes that come with the program"},
    {"COPPICE_CACHE_DIR", "DIR", "compiled kernels"},
    {"COPPICE_CACHE_MAX_MB", "N", "how large that folder may get; 0 keeps nothing"},
    {"COPPICE_DUMP", "DIR", "write every kernel's LLVM IR, assembly and PTX there"},
    {"COPPICE_PERF", "DIR", "write there what Linux's perf must know of kernels"},
    {"COPPICE_PTX_FOLDER", "DIR", "write every kernel's PTX there, for three generations of GPUs"},
    {"COPPICE_DEBUG", "step,checks", "compile kernels for a debugger, or with checks"},
    {"COPPICE_TEMPORARIES", "shared|apart", "whether temporaries share memory whose times allow it"},
    {"COPPICE_SIMT_SEED", "N", "the order in which --device simt runs things"},
    {"COPPICE_GPU_PROFILE", "DIR", "on an NVIDIA GPU, write every kernel's time and resources there"},
    {"COPPICE_PROFILE", "1", "log the time of every kernel at the end"},
};

void apply_log_level() {
  const char* name = std::getenv("COPPICE_LOG");
  if (!name || !*name) return;
  const std::optional<LogLevel> level = parse_log_level(name);
  if (!level) {
    throw Error(ErrorCode::kUsage,
                fmt::format("COPPICE_LOG must be debug, info, warning, error or off, not '{}'", name));
  }
  set_log_level(*level);
}

// Tests the folder with a file that goes at once: root may write where a folder's mode says no, and not
// where a file system has no files.
void check_ptx_folder() {
  const char* folder = std::getenv("COPPICE_PTX_FOLDER");
  if (!folder || !*folder) return;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);  // what is wrong with it, the file says
  try {
    const AtomicFile file((std::filesystem::path(folder) / "writable").string());
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, fmt::format("COPPICE_PTX_FOLDER: {}", error.message()));
  }
}

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

void check_environment() {
  apply_log_level();
  find_assets_folder();
  jit::KernelCache::default_max_bytes();
  codegen_options();
  temporaries_lie_apart();
  simt::options_from_environment();
  check_ptx_folder();
}

}  // namespace coppice::cli
