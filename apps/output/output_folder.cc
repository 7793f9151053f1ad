// Names a run's outputs and clears the way for them.
#include "apps/output/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/output/io_error.h"
#include "apps/output/same_file.h"
#include "core/error.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

std::string numbered(const std::string& folder, const char* prefix, int64_t frame, const char* suffix) {
  return (fs::path(folder) / fmt::format("{}{:04}{}", prefix, frame, suffix)).string();
}

// Returns the number of the file of a frame; -1 where it is none.
int64_t number_of(const std::string& name, const std::string& prefix, const std::string& suffix) {
  constexpr size_t kMostDigits = 18;
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size())
    return -1;
  const std::string_view digits =
      std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return -1;
  if (digits.size() < 4 || digits.size() > kMostDigits || (digits.size() > 4 && digits.front() == '0'))
    return -1;
  int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}
// Returns the frame that a file is of, -1 where it is of none.
int64_t frame_of(const std::string& name) {
  constexpr std::pair<const char*, const char*> kFiles[] = {{"frame_", ".png"},
                                                            {"particles_", ".ply"},
                                                            {"density_", ".vdb"},
                                                            {"particles_", ".vtu"},
                                                            {"grid_", ".vti"}};
  for (const auto& [prefix, suffix] : kFiles)
    if (const int64_t frame = number_of(name, prefix, suffix); frame >= 0) return frame;
  return -1;
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

void remove_file(const std::string& file) {
  std::error_code status;
  fs::remove(file, status);
  if (status) throw_io_error("cannot remove an earlier output", file, status.value());
}

constexpr std::string_view kAside = ".tmp.earlier";
std::string aside_of(const std::string& file) { return file + std::string(kAside); }

// Refuses a folder that cannot be made: the nearest that is there on the way to it must be a folder.
void check_way_to(const fs::path& folder) {
  std::error_code status;
  for (fs::path there = folder; !there.empty(); there = there.parent_path()) {
    if (fs::is_directory(there, status)) return;
    if (fs::exists(there, status))
      throw_io_error("cannot create the output folder", folder.string(), ENOTDIR);
    if (!fs::is_symlink(there, status)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("there is no such output folder: the link {} leads to {}, which is not there",
                            there.string(), fs::read_symlink(there, status).string()),
                {folder.string()});
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
std::string particles_vtu_path(const std::string& folder, int64_t frame) {
  return numbered(folder, "particles_", frame, ".vtu");
}
std::string grid_vti_path(const std::string& folder, int64_t frame) {
  return numbered(folder, "grid_", frame, ".vti");
}
std::string particles_pvd_path(const std::string& folder) {
  return (fs::path(folder) / "particles.pvd").string();
}
std::string grid_pvd_path(const std::string& folder) { return (fs::path(folder) / "grid.pvd").string(); }
std::string stats_csv_path(const std::string& folder) { return (fs::path(folder) / "stats.csv").string(); }
std::string movie_mp4_path(const std::string& folder) { return (fs::path(folder) / "movie.mp4").string(); }

std::string checkpoint_path(const std::string& folder) {
  return (fs::path(folder) / "state.checkpoint").string();
}

bool is_output_name(const std::string& name) {
  return frame_of(name) >= 0 || name == "particles.pvd" || name == "grid.pvd" || name == "stats.csv" ||
         name == "movie.mp4" || name == "state.checkpoint";
}

FolderLock::FolderLock(const std::string& folder) {
  std::error_code status;
  path_ = fs::canonical(folder, status).string();
  if (status) throw_io_error("cannot open the output folder", folder, status.value());
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) throw_io_error("cannot open the output folder", folder, errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw Error(ErrorCode::kUsage, "another run is writing into this folder; name another one with -o",
              {folder});
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : path_(std::exchange(other.path_, {})), descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FolderLock::is_of(const std::string& folder) const { return is_open_file_at(descriptor_, folder); }

OutputFolder::OutputFolder(std::string given, bool overwrite, bool resumes)
    : given_(std::move(given)), overwrite_(overwrite) {
  if (resumes) last_kept_ = -1;
  std::error_code status;
  if (fs::exists(given_, status) && !fs::is_directory(given_, status))
    throw Error(ErrorCode::kUsage, "the output folder is a file", {given_});
  check_way_to(given_);
  if (!fs::exists(given_, status)) return;
  lock();
  refuse_earlier();
}

void OutputFolder::lock() {
  if (!lock_.is_in_place()) lock_ = FolderLock(given_);
}

void OutputFolder::refuse_earlier() const {
  const std::vector<fs::path> outputs = list_files(path(), /*temporaries=*/false);
  if (outputs.empty() || overwrite_ || last_kept_) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("the output folder holds {} file{} of an earlier run ({}{}); --overwrite replaces them",
                  outputs.size(), outputs.size() > 1 ? "s" : "", outputs[0].filename().string(),
                  outputs.size() > 1 ? ", ..." : ""),
      {given_});
}

bool OutputFolder::is_kept(const std::string& name) const {
  if (!last_kept_) return false;
  const int64_t frame = frame_of(name);
  return frame >= 0 ? frame <= *last_kept_ : name != "movie.mp4";
}

void OutputFolder::prepare() {
  if (!lock_.is_in_place()) {
    check_way_to(given_);
    std::error_code status;
    fs::create_directories(given_, status);
    if (status) throw_io_error("cannot create the output folder", given_, status.value());
  }
  lock();
  // A run that was killed in its first frame has left them.
  for (const fs::path& file : list_files(path(), /*temporaries=*/true)) {
    const std::string name = file.string();
    if (name.ends_with(kAside)) {
      std::error_code ignored;  // one that cannot get its name back stays as it is
      fs::rename(name, name.substr(0, name.size() - kAside.size()), ignored);
    } else if (overwrite_ || last_kept_) {
      remove_file(name);
    }
  }
  refuse_earlier();
  if (::access(path().c_str(), W_OK | X_OK) != 0)
    throw_io_error("cannot write to the output folder", given_, errno);
  for (const fs::path& file : list_files(path(), /*temporaries=*/false)) {
    if (is_kept(file.filename().string())) continue;
    if (const std::error_code error = earlier_.add(file.string(), aside_of(file.string())))
      throw_io_error("cannot set an earlier output aside", file.string(), error.value());
  }
}

void OutputFolder::remove_earlier() {
  const auto [file, error] = earlier_.remove();
  if (error) throw_io_error("cannot remove an earlier output", file, error.value());
}

const std::string& OutputFolder::path() const {
  require_in_place();
  return lock_.path();
}

void OutputFolder::require_in_place() const {
  if (lock_.is_in_place()) return;
  throw Error(ErrorCode::kIo,
              "the output folder is gone: it was removed or moved while the run wrote into it",
              {lock_.path()});
}

std::string OutputFolder::text() const {
  if (lock_.path().empty() || lock_.is_of(given_)) return given_;
  return fmt::format("{}, which is no longer {}", lock_.path(), given_);
}

}  // namespace coppice
