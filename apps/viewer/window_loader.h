// Opens the viewer's window, through a plugin: nothing but libcoppice_window.so links GLFW and Dear ImGui.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/viewer/backend.h"

namespace coppice::viewer {

struct WindowOptions {
  std::string title = "coppice";
  int width = 1280, height = 800;
};

// Returns where the plugin is looked for (plugins/plugin_library.h).
std::vector<std::string> window_plugin_candidates();

// Is to be called, and what it returns used and deleted, on the program's first thread. There is one
// window at a time. Errors: kUnavailable without the plugin, a display or OpenGL 3.3.
std::unique_ptr<ViewerBackend> open_window(
    const WindowOptions& options, const std::vector<std::string>& candidates = window_plugin_candidates());

}  // namespace coppice::viewer
