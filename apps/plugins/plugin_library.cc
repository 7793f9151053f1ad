// Finds plugins beside the program and loads them by dlopen.
#include "apps/plugins/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/check.h"
#include "core/program_file.h"

namespace coppice {

std::vector<std::string> PluginLibrary::candidates(const PluginKind& kind) {
  const std::filesystem::path folder = program_folder();
  if (folder.empty()) return {kind.file_name};
  std::vector<std::string> candidates;
  for (const char* where : {".", "../lib", "../lib/coppice"}) {
    candidates.push_back((folder / where / kind.file_name).lexically_normal().string());
  }
  candidates.emplace_back(kind.file_name);
  return candidates;
}

PluginLibrary::PluginLibrary(const PluginKind& kind, const std::vector<std::string>& candidates) {
  for (const std::string& path : candidates) {
    if (load(kind, path)) return;
  }
  why_not_ = fmt::format("built without {}: no {}", kind.needs, fmt::join(candidates, ", no "));
}

bool PluginLibrary::load(const PluginKind& kind, const std::string& path) {
  std::error_code status;
  const bool is_path = path.find('/') != std::string::npos;
  if (is_path && !std::filesystem::exists(path, status)) return false;
  // Local, so that the many symbols of what it links meet no others.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string why = ::dlerror();
    // The loader names what it did not find: the plugin, or a library that the plugin links.
    if (!is_path && why.starts_with(path + ": cannot open shared object file")) return false;
    why_not_ = fmt::format("the {} plugin does not load: {}", kind.name, why);
    return true;
  }
  const auto version = reinterpret_cast<int (*)()>(::dlsym(library, kind.version_function));
  if (version == nullptr || version() != kind.version) {
    why_not_ = fmt::format("the {} plugin {} belongs to another version of coppice", kind.name, path);
    return true;
  }
  library_ = library;
  path_ = path;
  return true;
}

void* PluginLibrary::entry_point(const char* name) const {
  COPPICE_CHECK(is_loaded(), "{}", why_not_);
  void* entry = ::dlsym(library_, name);
  COPPICE_CHECK(entry != nullptr, "{} lacks {}, an entry point of its version", path_, name);
  return entry;
}

}  // namespace coppice
