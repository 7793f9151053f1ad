// Finds the assets folder and the scenes in it.
#include "apps/cli/assets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "core/nearest_name.h"
#include "core/program_file.h"

namespace coppice::cli {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code status;
  return fs::is_directory(path, status);
}

std::vector<fs::path> usual_places() {
  std::vector<fs::path> places;
  if (const fs::path& program = program_file(); !program.empty())
    places.push_back(program.parent_path().parent_path() / "share" / "coppice" / "assets");
#ifdef COPPICE_SOURCE_DIR
  places.push_back(fs::path(COPPICE_SOURCE_DIR) / "assets");
#endif
  return places;
}

}  // namespace

std::optional<fs::path> find_assets_folder() {
  if (const char* named = std::getenv("COPPICE_ASSETS"); named && *named) {
    if (is_folder(named)) return fs::path(named);
    throw Error(ErrorCode::kUsage, fmt::format("COPPICE_ASSETS names '{}', which is not a folder", named));
  }
  for (const fs::path& place : usual_places()) {
    if (is_folder(place)) return place;
  }
  return std::nullopt;
}

std::vector<fs::path> list_scene_files() {
  const std::optional<fs::path> assets = find_assets_folder();
  if (!assets || !is_folder(*assets / "scenes")) return {};
  return list_scene_files(*assets / "scenes");
}

std::vector<fs::path> list_scene_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code status;
  for (fs::directory_iterator entry(folder, status), end; !status && entry != end; entry.increment(status)) {
    std::error_code unknown;  // a link that leads nowhere is told where it is read
    const bool is_pipe = fs::is_other(entry->status(unknown));  // or a device: reading it may not end
    if (entry->path().extension() == ".toml" && !is_pipe && !is_folder(entry->path()))
      files.push_back(entry->path());
  }
  if (status) {
    throw Error(status == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
                fmt::format("cannot list the folder '{}': {}", folder.string(), status.message()));
  }
  std::ranges::sort(files);
  return files;
}

fs::path resolve_scene(const std::string& typed) {
  std::error_code status;
  const bool is_there = fs::exists(typed, status);
  if (is_there && !is_folder(typed)) return typed;
  const bool is_path = typed.find('/') != std::string::npos || fs::path(typed).extension() == ".toml";
  const std::vector<fs::path> files = list_scene_files();
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    names.push_back(file.stem().string());
    if (typed == names.back() || typed == file.filename().string()) return file;
  }
  if (is_there) return typed;  // what reads it says that it is a folder
  const std::string stem = fs::path(typed).stem().string();
  const auto near = nearest_name(stem, names);
  const std::string hint = near            ? fmt::format("did you mean '{}'?", *near)
                           : names.empty() ? "no scenes are installed; give the path of a file"
                                           : fmt::format("the scenes are {}", fmt::join(names, ", "));
  if (status && status != std::errc::no_such_file_or_directory)
    throw Error(ErrorCode::kIo, fmt::format("cannot read scene '{}': {}", typed, status.message()));
  if (is_path) {
    throw Error(ErrorCode::kUsage,
                fmt::format("there is no file '{}'{}", typed,
                            near ? fmt::format("; did you mean the scene '{}'?", *near) : ""));
  }
  throw Error(ErrorCode::kUsage, fmt::format("no scene '{}'; {}", typed, hint));
}

}  // namespace coppice::cli
