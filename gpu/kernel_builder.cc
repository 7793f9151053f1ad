// Doing a build's commands again (see kernel_builder.h).
#include "gpu/kernel_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/read_file.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "coppice kernel recipe 1";

std::optional<std::string> read_text(const fs::path& file) {
  std::string text;
  if (read_file(file.string(), text) != 0) return std::nullopt;
  return text;
}

Error missing(const std::string& what) {
  return {ErrorCode::kUnavailable, fmt::format("changed kernels cannot be compiled: {}", what)};
}

constexpr std::string_view kFolderPrefix = "coppice_reload_";

fs::path folder_of_folders() {
  std::error_code why;
  const fs::path folder = fs::temp_directory_path(why);
  if (why) throw Error(ErrorCode::kIo, fmt::format("no folder for temporary files: {}", why.message()));
  return fs::absolute(folder);  // compilers run in another one
}

// Its name is "coppice_reload_<pid>_XXXXXX".
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (folder_of_folders() / fmt::format("{}{}_XXXXXX", kFolderPrefix, ::getpid())).string();
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

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Error no_channel() { return {ErrorCode::kIo, fmt::format("no pipe: {}", std::strerror(errno))}; }

// Holds what a command wrote, and its exit status (of one that a signal ended: 128 and its number).
struct Done {
  int status = 0;
  std::string words;
};

// This is a command that runs: in a process group of its own, so that neither a Ctrl-C for the program
// reaches it nor one that it started outlives it.
class Command {
 public:
  // `input` becomes its standard input.
  Command(const KernelRecipe& recipe, const std::vector<std::string>& command,
          Descriptor input = Descriptor())
      : program_(command[0]) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw no_channel();
    words_ = Descriptor(ends[0]);
    const Descriptor to(ends[1]);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    // Paths that the bitcode has are then those of the build, and so are its hash and its machine code.
    ::posix_spawn_file_actions_addchdir_np(&actions, recipe.folder.c_str());
    if (input.number() >= 0)
      ::posix_spawn_file_actions_adddup2(&actions, input.number(), STDIN_FILENO);
    else
      ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, to.number(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, to.number(), STDERR_FILENO);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int failed = ::posix_spawn(&child_, words[0], &actions, &attributes, words.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw missing(fmt::format("{}: {}", program_, std::strerror(failed)));
  }
  ~Command() {
    if (child_ == 0) return;
    ::kill(-child_, SIGKILL);
    wait_end();
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Takes what it wrote meanwhile, for at most 50 ms, and until `writable` has room. False: it has ended. The
  // words come by a pipe, which is at its end when the command is.
  bool wait_a_little(const Descriptor& writable = Descriptor()) {
    if (child_ == 0) return false;
    pollfd news[]{{words_.number(), POLLIN, 0}, {writable.number(), POLLOUT, 0}};
    if (::poll(news, 2, 50) <= 0 || news[0].revents == 0) return true;
    char piece[4096];
    const ssize_t n = ::read(words_.number(), piece, sizeof piece);
    if (n > 0) done_.words.append(piece, static_cast<size_t>(n));
    if (n > 0 || (n < 0 && errno == EINTR)) return true;
    wait_end();
    return false;
  }
  const std::string& program() const { return program_; }
  const Done& done() const { return done_; }

 private:
  // If the process lets the system reap its children, nobody knows how they ended: then the files that
  // they should have written tell.
  void wait_end() {
    int status = 0;
    pid_t ended = 0;
    do ended = ::waitpid(child_, &status, 0);
    while (ended < 0 && errno == EINTR);
    child_ = 0;
    if (ended > 0) done_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string program_;
  Descriptor words_;
  pid_t child_ = 0;
  Done done_;
};

// Returns the first line that speaks of an error; else the first one.
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

// Returns what is wrong where a command failed, or left nothing; else an empty text.
std::string why_failed(const Command& command, bool has_output, const KernelRecipe& recipe) {
  if (command.done().status == 0 && has_output) return "";
  log_debug("{}", command.done().words);
  const std::string why = first_error(command.done().words), file = recipe.source.filename().string();
  const bool has_place = why.find("error: ") != std::string::npos || why.find(file) != std::string::npos;
  if (!why.empty()) return has_place ? why : fmt::format("{}: {}", file, why);
  return fmt::format("{}: {} ended with status {}", recipe.source.string(), command.program(),
                     command.done().status);
}

bool is_there(const std::string& file) {
  std::error_code ignored;
  return fs::file_size(file, ignored) > 0 && !ignored;
}

// Sends as much as there is room for. Returns true when all of it is sent, or the reader has ended.
bool send(const Descriptor& to, std::string_view& bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(to.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
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

BuiltKernels wait_build_kernels(const KernelRecipe& recipe, const std::string& known,
                                const std::function<bool()>& must_stop) {
  const TemporaryFolder folder;
  const auto in_folder = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string raw = in_folder("debug.bc"), shipped = in_folder("shipped.bc");
  const std::string interface = in_folder("interface"), dependencies = in_folder("dependencies");
  const std::string known_file = in_folder("known");
  std::ofstream(known_file) << known;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto go_on = [&] {
    if (must_stop()) throw Error(ErrorCode::kCancelled, "compiling kernels was stopped");
  };
  BuiltKernels built;
  {
    std::vector<std::string> words{recipe.clang};
    words.insert(words.end(), recipe.flags.begin(), recipe.flags.end());
    words.insert(words.end(), {"-fno-color-diagnostics", "-MD", "-MF", dependencies, "-MQ", "kernels",
                               recipe.source.string(), "-o", raw});
    Command clang(recipe, words);
    while (clang.wait_a_little()) go_on();
    if (is_there(dependencies)) built.sources = kernel_sources(recipe, dependencies);
    built.why_not = why_failed(clang, is_there(raw), recipe);
    if (!built.why_not.empty()) return built;
  }
  const double clang_s = elapsed_s();
  // coppice-kernelgen reads what clang made while opt is at work, and then what opt made.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw no_channel();
  Descriptor to_kernelgen(ends[0]);
  Command kernelgen(recipe,
                    {recipe.kernelgen, "--interface", raw, "-", recipe.name, recipe.library, recipe.eigen,
                     interface, known_file},
                    Descriptor(ends[1]));
  Command opt(recipe, {recipe.opt, "-passes=" + recipe.passes, raw, "-o", shipped});
  while (opt.wait_a_little()) go_on();
  built.why_not = why_failed(opt, is_there(shipped), recipe);
  if (!built.why_not.empty()) return built;
  const double opt_s = elapsed_s();
  const std::string bitcode = read_text(shipped).value_or("");
  std::string_view rest = bitcode;
  for (bool is_running = true; is_running;) {
    if (to_kernelgen.number() >= 0 && send(to_kernelgen, rest)) to_kernelgen = Descriptor();
    is_running = kernelgen.wait_a_little(to_kernelgen);
    go_on();
  }
  built.why_not = why_failed(kernelgen, is_there(interface), recipe);
  log_debug("kernels: {}: clang took {:.2f} s, opt {:.2f} s, coppice-kernelgen {:.2f} s more",
            recipe.source.filename().string(), clang_s, opt_s - clang_s, elapsed_s() - opt_s);
  const auto bytes = std::as_bytes(std::span(bitcode));
  built.bitcode.assign(bytes.begin(), bytes.end());
  built.interface = read_text(interface).value_or("");
  return built;
}

void remove_dead_build_folders() {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of_folders(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFolderPrefix)) continue;
    pid_t owner = 0;
    const char* const digits = name.data() + kFolderPrefix.size();
    const auto read = std::from_chars(digits, name.data() + name.size(), owner);
    const bool is_ours = read.ptr != digits && *read.ptr == '_' && owner > 0;
    if (is_ours && ::kill(owner, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace coppice
