// Doing a build's commands again (see kernel_builder.h).
#include "gpu/kernel_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "coppice kernel recipe 1";

std::optional<std::string> read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Error missing(const std::string& what) {
  return {ErrorCode::kUnavailable, fmt::format("changed kernels cannot be compiled: {}", what)};
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "coppice_reload_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::kIo, fmt::format("no temporary folder {}: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What a command wrote, and its exit status (of one that a signal ended: 128 and its number).
struct Done {
  int status = 0;
  std::string words;
};

// The words come by a pipe, which is at its end when the command is.
Done wait_command(const std::vector<std::string>& command, const std::atomic<bool>& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::kIo, fmt::format("no pipe: {}", std::strerror(errno)));
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  Done done;
  if (failed != 0) {
    ::close(ends[0]);
    throw missing(fmt::format("{}: {}", command[0], std::strerror(failed)));
  }
  bool is_stopped = false;
  for (;;) {
    if (!is_stopped && stop.load()) {
      ::kill(child, SIGKILL);
      is_stopped = true;
    }
    pollfd news{ends[0], POLLIN, 0};
    if (::poll(&news, 1, 50) <= 0) continue;
    char piece[4096];
    const ssize_t n = ::read(ends[0], piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done.words.append(piece, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_stopped) throw Error(ErrorCode::kCancelled, "compiling kernels was stopped");
  done.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return done;
}

// The first line that speaks of an error; else the first one.
std::string first_error(const std::string& words) {
  std::string_view rest = words, first;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (first.empty()) first = line;
    if (line.find("error: ") == std::string_view::npos) continue;
    constexpr std::string_view kTool = "coppice-kernelgen: error: ";
    return std::string(line.starts_with(kTool) ? line.substr(kTool.size()) : line);
  }
  return std::string(first);
}

void wait_step(const std::vector<std::string>& command, const KernelRecipe& recipe,
               const std::atomic<bool>& stop) {
  const Done done = wait_command(command, stop);
  if (done.status == 0) return;
  log_debug("{}", done.words);
  std::string why = first_error(done.words);
  if (why.empty())
    why = fmt::format("{}: {} ended with status {}", recipe.source.string(), command[0], done.status);
  throw Error(ErrorCode::kCompile, why);
}

bool is_within(const fs::path& file, const std::string& folder) {
  return !folder.empty() && file.string().starts_with(folder.back() == '/' ? folder : folder + '/');
}

}  // namespace

KernelRecipe read_kernel_recipe(const fs::path& file) {
  const std::optional<std::string> text = read_text(file);
  if (!text) throw missing(fmt::format("there is no {}, which the build left", file.string()));
  std::string_view rest = *text;
  KernelRecipe recipe;
  bool is_first = true;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (std::exchange(is_first, false)) {
      if (line != kFirstLine) throw missing(fmt::format("{} is no recipe of this version", file.string()));
      continue;
    }
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string_view key = line.substr(0, blank);
    const std::string value(line.substr(std::min(blank + 1, line.size())));
    if (key == "name") recipe.name = value;
    if (key == "source") recipe.source = value;
    if (key == "folder") recipe.folder = value;
    if (key == "bitcode") recipe.bitcode = value;
    if (key == "dependencies") recipe.dependencies = value;
    if (key == "clang") recipe.clang = value;
    if (key == "flag") recipe.flags.push_back(value);
    if (key == "opt") recipe.opt = value;
    if (key == "passes") recipe.passes = value;
    if (key == "kernelgen") recipe.kernelgen = value;
    if (key == "library") recipe.library = value;
    if (key == "eigen") recipe.eigen = value;
  }
  for (const fs::path& part : {recipe.source, recipe.bitcode}) {
    if (::access(part.c_str(), R_OK) != 0)
      throw missing(fmt::format("there is no kernel file {}", part.string()));
  }
  for (const std::string& program : {recipe.clang, recipe.opt, recipe.kernelgen}) {
    if (::access(program.c_str(), X_OK) != 0)
      throw missing(fmt::format("there is no {}, with which the build did it", program));
  }
  return recipe;
}

std::vector<fs::path> kernel_sources(const KernelRecipe& recipe, const fs::path& dependencies) {
  std::vector<fs::path> sources{recipe.source};
  const std::string text = read_text(dependencies).value_or("");
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && word.back() != ':') {
      const fs::path file = (recipe.folder / word).lexically_normal();
      const bool is_fixed =
          is_within(file, "/usr/include") || is_within(file, "/usr/lib") || is_within(file, recipe.eigen);
      if (!is_fixed && std::find(sources.begin(), sources.end(), file) == sources.end())
        sources.push_back(file);
    }
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped = text[i] == '\\' && i + 1 < text.size();
    if (is_escaped && text[i + 1] == '\n') {
      end_word(), ++i;
    } else if (is_escaped && (text[i + 1] == ' ' || text[i + 1] == '#')) {
      word += text[++i];
    } else if (text[i] == ' ' || text[i] == '\n') {
      end_word();
    } else {
      if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') ++i;
      word += text[i];
    }
  }
  end_word();
  return sources;
}

BuiltKernels wait_build_kernels(const KernelRecipe& recipe, const std::atomic<bool>& stop) {
  const TemporaryFolder folder;
  const auto in_folder = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string raw = in_folder("debug.bc"), shipped = in_folder("shipped.bc");
  const std::string interface = in_folder("interface"), dependencies = in_folder("dependencies");
  std::vector<std::string> clang{recipe.clang};
  clang.insert(clang.end(), recipe.flags.begin(), recipe.flags.end());
  clang.insert(clang.end(), {"-fno-color-diagnostics", "-MD", "-MF", dependencies, "-MQ", "kernels",
                             recipe.source.string(), "-o", raw});
  wait_step(clang, recipe, stop);
  wait_step({recipe.opt, "-passes=" + recipe.passes, raw, "-o", shipped}, recipe, stop);
  wait_step(
      {recipe.kernelgen, "--interface", raw, shipped, recipe.name, recipe.library, recipe.eigen, interface},
      recipe, stop);
  BuiltKernels built;
  const std::string bitcode = read_text(shipped).value_or("");
  const auto bytes = std::as_bytes(std::span(bitcode));
  built.bitcode.assign(bytes.begin(), bytes.end());
  built.interface = read_text(interface).value_or("");
  built.sources = kernel_sources(recipe, dependencies);
  if (built.bitcode.empty() || built.interface.empty())
    throw Error(ErrorCode::kIo, fmt::format("{}: what was compiled cannot be read", recipe.source.string()));
  return built;
}

}  // namespace coppice
