// Loads the window's plugin and gives it the program's loader of OpenGL.
#include "apps/viewer/window_loader.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "apps/plugins/plugin_library.h"
#include "apps/viewer/window/window_plugin.h"
#include "core/error.h"

namespace coppice::viewer {
namespace {

constexpr PluginKind kPlugin{.file_name = "libcoppice_window.so",
                             .name = "window",
                             .needs = "GLFW and Dear ImGui",
                             .version_function = "coppice_window_abi_version",
                             .version = COPPICE_WINDOW_ABI_VERSION};

int load_gl(render::GlProcLoader loader, render::GlFunctions* gl, char* error, size_t error_bytes) {
  try {
    *gl = render::load_gl_functions(loader);
    return 0;
  } catch (const std::exception& e) {
    std::snprintf(error, error_bytes, "%s", e.what());
    return 1;
  }
}

}  // namespace

std::vector<std::string> window_plugin_candidates() { return PluginLibrary::candidates(kPlugin); }

std::unique_ptr<ViewerBackend> open_window(const WindowOptions& options,
                                           const std::vector<std::string>& candidates) {
  const PluginLibrary plugin(kPlugin, candidates);
  const auto fail = [](const std::string& why) {
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot open a window: {}", why));
  };
  if (!plugin.is_loaded()) fail(plugin.why_not());
  const auto open =
      reinterpret_cast<decltype(&coppice_open_window)>(plugin.entry_point("coppice_open_window"));
  const CoppiceWindowOptions crossing{options.title.c_str(), options.width, options.height, load_gl};
  std::array<char, 512> error{};
  std::unique_ptr<ViewerBackend> backend(open(&crossing, error.data(), error.size()));
  if (backend == nullptr) fail(error.data());
  return backend;
}

}  // namespace coppice::viewer
