// Finds the assets folder and the scenes in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace coppice::cli {

// $COPPICE_ASSETS, else <folder of the program>/../share/coppice/assets, else the source tree's assets;
// nothing when none of them exists. A COPPICE_ASSETS that is no folder is an Error(kUsage): falling back
// would hide a typing mistake.
std::optional<std::filesystem::path> find_assets_folder();

// The scene files in <assets>/scenes, sorted by name; empty when there are none.
std::vector<std::filesystem::path> list_scene_files();
// The same of any folder, with its path in front. Errors: kNotFound, kIo.
std::vector<std::filesystem::path> list_scene_files(const std::filesystem::path& folder);

// The file for what the user typed: a path, or the name of a scene in the assets ("snow_3d"). A file that
// exists comes first, and a folder last. Throws Error(kUsage) with the nearest known name, or where the words
// can only be a path, that there is no such file; Error(kIo) where that cannot be known.
std::filesystem::path resolve_scene(const std::string& typed);

}  // namespace coppice::cli
