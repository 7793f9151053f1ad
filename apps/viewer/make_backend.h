// Makes back ends by their names.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/viewer/backend.h"

namespace coppice::viewer {

struct BackendOptions {
  std::string where = "window";
  std::filesystem::path folder = ".";  // of pictures
  bool overwrite = false;              // those of an earlier run
  int width = 1280, height = 720;      // of pictures
  std::string title;                   // of a window
};

// Returns "window", "file", "null".
std::vector<std::string> backend_names();
// Flags of a command line that only some back ends have a use for.
struct BackendFlags {
  bool is_paused = false;     // --paused
  bool names_folder = false;  // -o
  bool overwrites = false;    // --overwrite
};
// Errors: kUsage for a flag that means nothing with the back end `where`.
void check_flags(const std::string& where, const BackendFlags& flags);
// Errors: kUnavailable with the reason where there can be no window, kIo for the folder.
std::unique_ptr<ViewerBackend> make_backend(const BackendOptions& options);

}  // namespace coppice::viewer
