// Compares names of files with those of a run (see own_files.h).
#include "apps/output/own_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "apps/output/output_folder.h"
#include "core/error.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel follows

// Returns the path that links at `path` lead to, whether a file is there or not.
fs::path follow_links(fs::path path) {
  std::error_code status;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, status); ++links)
    path = path.parent_path() / fs::read_symlink(path, status);
  return path;
}

bool is_named(const std::string& file) { return !file.empty() && file != "-"; }

}  // namespace

void refuse_input(const std::string& option, const std::string& file, const std::string& what,
                  const std::string& input) {
  std::error_code status;
  if (!is_named(file) || !fs::is_regular_file(file, status) || !fs::equivalent(file, input, status)) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} {} would overwrite {}, {}; name another file", option, file, what, input));
}

void refuse_output(const std::string& option, const std::string& file, const std::string& folder) {
  const fs::path target = follow_links(file);
  std::error_code status;
  if (!is_named(file) || !is_output_name(target.filename().string())) return;
  const fs::path parent = target.has_parent_path() ? target.parent_path() : ".";
  if (!fs::equivalent(parent, folder.empty() ? "." : folder, status)) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("{} {} is a file that the run itself writes into its output folder, {}; "
                          "name another file",
                          option, file, folder));
}

void refuse_same_file(const std::string& option, const std::string& file, const std::string& other_option,
                      const std::string& other) {
  if (!is_named(file) || !is_named(other)) return;
  std::error_code status;
  const fs::path target = follow_links(file), of_other = follow_links(other);
  if (fs::exists(target, status)
          ? !fs::is_regular_file(target, status) || !fs::equivalent(target, of_other, status)
          : fs::weakly_canonical(target) != fs::weakly_canonical(of_other))
    return;
  throw Error(ErrorCode::kUsage, fmt::format("{} {} and {} {} are one file; name another for one of them",
                                             other_option, other, option, file));
}

}  // namespace coppice
