// Names a run's outputs and clears the way for them.
#include "apps/output/output_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "apps/output/io_error.h"
#include "core/error.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

std::string numbered(const std::string& folder, const char* prefix, int64_t frame, const char* suffix) {
  return (fs::path(folder) / fmt::format("{}{:04}{}", prefix, frame, suffix)).string();
}

bool is_numbered(const std::string& name, const std::string& prefix, const std::string& suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size())
    return false;
  return std::all_of(name.begin() + prefix.size(), name.end() - suffix.size(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Our outputs in `folder`, or the temporaries of our outputs; sorted, so that messages do not depend on the
// disk.
std::vector<fs::path> list_files(const std::string& folder, bool temporaries) {
  std::vector<fs::path> files;
  std::error_code status;
  for (fs::directory_iterator entry(folder, status), end; !status && entry != end; entry.increment(status)) {
    const std::string name = entry->path().filename().string();
    const size_t suffix = name.find(".tmp.");
    const bool is_ours = temporaries ? suffix != std::string::npos && is_output_name(name.substr(0, suffix))
                                     : is_output_name(name);
    std::error_code ignored;
    if (is_ours && fs::symlink_status(entry->path(), ignored).type() != fs::file_type::directory) {
      files.push_back(entry->path());
    }
  }
  if (status) throw_io_error("cannot list the output folder", folder, status.value());
  std::sort(files.begin(), files.end());
  return files;
}

void remove_files(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    std::error_code status;
    fs::remove(file, status);
    if (status) throw_io_error("cannot remove an earlier output", file.string(), status.value());
  }
}

}  // namespace

std::string frame_png_path(const std::string& folder, int64_t frame) {
  return numbered(folder, "frame_", frame, ".png");
}
std::string particles_ply_path(const std::string& folder, int64_t frame) {
  return numbered(folder, "particles_", frame, ".ply");
}
std::string density_vdb_path(const std::string& folder, int64_t frame) {
  return numbered(folder, "density_", frame, ".vdb");
}
std::string stats_csv_path(const std::string& folder) { return (fs::path(folder) / "stats.csv").string(); }
std::string movie_mp4_path(const std::string& folder) { return (fs::path(folder) / "movie.mp4").string(); }

bool is_output_name(const std::string& name) {
  return is_numbered(name, "frame_", ".png") || is_numbered(name, "particles_", ".ply") ||
         is_numbered(name, "density_", ".vdb") || name == "stats.csv" || name == "movie.mp4";
}

void check_output_folder(const std::string& folder, bool overwrite) {
  std::error_code status;
  if (!fs::exists(folder, status)) return;
  if (!fs::is_directory(folder, status)) {
    throw Error(ErrorCode::kUsage, "the output folder is a file", {folder});
  }
  const std::vector<fs::path> outputs = list_files(folder, /*temporaries=*/false);
  if (outputs.empty() || overwrite) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("the output folder holds {} file{} of an earlier run ({}{}); --overwrite replaces them",
                  outputs.size(), outputs.size() > 1 ? "s" : "", outputs[0].filename().string(),
                  outputs.size() > 1 ? ", ..." : ""),
      {folder});
}

void prepare_output_folder(const std::string& folder, bool overwrite) {
  check_output_folder(folder, overwrite);
  std::error_code status;
  fs::create_directories(folder, status);
  if (status) throw_io_error("cannot create the output folder", folder, status.value());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw_io_error("cannot write to the output folder", folder, errno);
  remove_files(list_files(folder, /*temporaries=*/false));
  if (overwrite) remove_files(list_files(folder, /*temporaries=*/true));
}

}  // namespace coppice
