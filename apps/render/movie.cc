// Runs ffmpeg without a shell: its own process, in the frames' folder, its messages kept for the log.
#include "apps/render/movie.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <vector>

#include "core/atomic_file.h"
#include "core/log.h"

extern char** environ;

namespace coppice::render {
namespace {

// Both ends close when the scope ends, whatever happened.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
};

// Reads to the end of the stream; keeps the last line that says something.
std::string read_last_line(int descriptor) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t n = read(descriptor, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > 65536) text.erase(0, text.size() - 32768);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t last = text.rfind('\n');
  return last == std::string::npos ? text : text.substr(last + 1);
}

struct Outcome {
  int spawn_error = 0;  // errno of a program that could not be started
  std::string failure;  // how the program ended, and the last line that it wrote; empty: it is done
};

Outcome wait_and_run(const std::vector<std::string>& arguments, const std::string& folder) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  Pipe errors;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (errors.ends[1] >= 0) posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  // Frames are named relative to their folder, so that a % in its name is not taken for a number.
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  Outcome outcome;
  pid_t child = 0;
  outcome.spawn_error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  errors.close_end(1);
  if (outcome.spawn_error != 0) return outcome;
  const std::string message = errors.ends[0] >= 0 ? read_last_line(errors.ends[0]) : "";
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) outcome.failure = fmt::format("was ended by signal {}", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    outcome.failure = fmt::format("ended with exit status {}", WEXITSTATUS(status));
  if (!outcome.failure.empty() && !message.empty()) outcome.failure += ": " + message;
  return outcome;
}

bool encode(const MovieOptions& options, const std::string& path) {
  const std::filesystem::path final_path = std::filesystem::absolute(path);
  AtomicFile file(final_path.string());
  const std::vector<std::string> arguments = {
      options.ffmpeg, "-nostdin", "-y", "-loglevel", "error", "-framerate", fmt::format("{}", options.fps),
      "-start_number", fmt::format("{}", options.first_frame), "-i", "file:" + options.pattern,
      // H.264 with the chroma that every player reads wants even sides.
      "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-c:v", "libx264", "-crf", "18", "-preset", "medium",
      "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", "file:" + file.temporary_path()};
  const std::string folder = options.frames_folder.empty() ? "." : options.frames_folder;
  if (!std::filesystem::is_directory(folder)) {
    log_warning("no movie '{}': there is no folder '{}'", path, folder);
    return false;
  }
  const Outcome outcome = wait_and_run(arguments, folder);
  if (outcome.spawn_error != 0) {
    log_info("no movie '{}': {} was not found ({}); the frames are complete without it", path, options.ffmpeg,
             std::strerror(outcome.spawn_error));
    return false;
  }
  std::error_code status;
  const bool is_empty = std::filesystem::file_size(file.temporary_path(), status) == 0;
  if (!outcome.failure.empty() || is_empty) {
    log_warning("no movie '{}': {} {}; the frames are complete without it", path, options.ffmpeg,
                outcome.failure.empty() ? "wrote nothing" : outcome.failure);
    return false;
  }
  file.commit();
  return true;
}

}  // namespace

bool wait_and_write_movie(const MovieOptions& options, const std::string& path) noexcept {
  try {
    return encode(options, path);
  } catch (const std::exception& error) {
    log_warning("no movie '{}': {}", path, error.what());
    return false;
  }
}

}  // namespace coppice::render
