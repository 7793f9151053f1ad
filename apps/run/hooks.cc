// The command line calls these: the solver's run, the device's cache, and what the libraries tell of
// themselves.
#include <fmt/format.h>

#include "apps/cli/commands.h"
#include "apps/output/vdb_writer.h"
#include "apps/ranks/rank_job.h"
#include "apps/render/renderer.h"
#include "apps/run/run_scene.h"
#include "apps/run/validate_scene.h"
#include "apps/run/view_scene.h"
#include "core/error.h"
#include "core/start_ranks.h"
#include "gpu/device.h"
#include "gpu/jit/kernel_cache.h"
#include "gpu/jit/specializer.h"

namespace coppice::cli {
namespace {

std::string opengl_text() {
  try {
    return render::Renderer(16, 16).description();
  } catch (const Error& error) {
    return fmt::format("none ({})", error.what());
  }
}

std::vector<InfoLine> info() {
  const VdbWriter vdb;
  return {{"LLVM", std::string(jit::llvm_version())},
          {"kernel target", jit::host_target().cpu},
          {"kernel target features", jit::host_target().features, false, true},
          {"devices", "cpu, simt"},
          {"OpenGL", opengl_text()},
          {"MPI plugin", why_no_ranks().empty() ? "found" : fmt::format("none ({})", why_no_ranks())},
          {"OpenVDB plugin", vdb.is_available() ? "found" : fmt::format("none ({})", vdb.why_not())}};
}

CacheSummary summary(const jit::KernelCache& cache) {
  const jit::KernelCache::Stats stats = cache.stats();
  return {cache.folder(), static_cast<int64_t>(stats.entries), static_cast<int64_t>(stats.bytes),
          static_cast<int64_t>(cache.max_bytes())};
}

jit::KernelCache default_cache() {
  return jit::KernelCache(jit::KernelCache::default_folder(), jit::KernelCache::default_max_bytes());
}

}  // namespace

CliHooks make_cli_hooks() {
  return {
      .run = run_scene,
      .start_ranks = start_ranks,
      .view = view_scene,
      .validate = validate_scene,
      .functions = describe_functions,
      .info = info,
      .device = [](const std::string& name) { return Device::named(name)->description(); },
      .cache = [] { return summary(default_cache()); },
      .clear_cache =
          [] {
            jit::KernelCache cache = default_cache();
            const CacheSummary before = summary(cache);
            cache.clear();
            return before;
          },
  };
}

}  // namespace coppice::cli
