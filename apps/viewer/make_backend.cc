// Back ends by their names (see make_backend.h).
#include "apps/viewer/make_backend.h"

#include <fmt/format.h>

#include "apps/viewer/quiet_backends.h"
#include "apps/viewer/window_loader.h"
#include "core/check.h"
#include "core/error.h"

namespace coppice::viewer {

std::vector<std::string> backend_names() { return {"window", "file", "null"}; }

void check_flags(const std::string& where, const BackendFlags& flags) {
  const auto refuse = [](std::string message) { throw Error(ErrorCode::kUsage, std::move(message)); };
  if (flags.is_paused && where != "window")
    refuse(fmt::format("--paused is for a window; nobody could go on with --view {}", where));
  if (flags.names_folder && where == "null") refuse("-o is the folder of pictures; --view null makes none");
  if (flags.overwrites && where != "file")
    refuse(fmt::format("--overwrite is for --view file; --view {} replaces nothing", where));
}

std::unique_ptr<ViewerBackend> make_backend(const BackendOptions& options) {
  if (options.where == "null") return std::make_unique<NullBackend>();
  if (options.where == "file")
    return std::make_unique<FileBackend>(options.folder, options.overwrite, options.width, options.height);
  COPPICE_CHECK(options.where == "window", "no back end '{}'", options.where);
  try {
    return open_window({.title = options.title});
  } catch (const Error& error) {
    throw Error(error.code(), error.message() + "; --view file writes pictures");
  }
}

}  // namespace coppice::viewer
