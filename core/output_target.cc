// Names of outputs by POSIX calls (see output_target.h).
#include "core/output_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <system_error>

#include "core/error.h"

namespace coppice {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string canonical(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> text(realpath(path.c_str(), nullptr), &std::free);
  return text ? text.get() : "";
}

// Returns N, where `path` is an entry N of the folder in which the kernel shows this process its
// descriptors.
std::optional<int> own_descriptor(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  int number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failed != std::errc() || end != name.data() + name.size()) return std::nullopt;
  const std::string folder = canonical(folder_of(path));
  if (folder.empty() || folder != canonical("/proc/self/fd")) return std::nullopt;
  return number;
}

// Returns where the link at `path` leads; empty: it is none.
std::string link_at(const std::string& path) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = readlink(path.c_str(), text.data(), text.size());
  if (size <= 0) return "";
  const std::string to(text.data(), static_cast<size_t>(size));
  return to.front() == '/' ? to : folder_of(path) + "/" + to;
}

[[noreturn]] void refuse(const std::string& name, int error_number) {
  throw Error(ErrorCode::kIo,
              fmt::format("{} cannot be opened: {}", name, std::generic_category().message(error_number)));
}

int duplicate(const std::string& name, int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0) refuse(name, errno);
  if ((flags & O_ACCMODE) == O_RDONLY) refuse(name, EBADF);
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) refuse(name, errno);
  return copy;
}

// Keeps the signals of writes from the calling thread while it lives, and takes away those that arose
// meanwhile: a pipe that nobody reads any more, and a file above the limit of `ulimit -f`.
class WithoutSignalsOfWrites {
 public:
  WithoutSignalsOfWrites() {
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&blocked_), sigemptyset(&new_);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      sigaddset(&blocked_, signal);
      if (sigismember(&pending, signal) == 0) sigaddset(&new_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &blocked_, &before_);
  }
  ~WithoutSignalsOfWrites() {
    const timespec now{};
    while (sigtimedwait(&new_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSignalsOfWrites(const WithoutSignalsOfWrites&) = delete;
  WithoutSignalsOfWrites& operator=(const WithoutSignalsOfWrites&) = delete;

 private:
  sigset_t blocked_{}, new_{}, before_{};
};

}  // namespace

OutputTarget open_output(const std::string& name) {
  if (name == "-") return {.descriptor = duplicate(name, STDOUT_FILENO)};
  std::string path = name;
  for (int links = 0; links < kMostLinks; ++links) {
    if (const std::optional<int> own = own_descriptor(path)) return {.descriptor = duplicate(name, *own)};
    const std::string next = link_at(path);
    if (next.empty()) break;
    path = next;
  }
  struct stat found {};
  if (stat(name.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {.path = path};  // whoever makes the file is told why not
    refuse(name, errno);
  }
  if (S_ISREG(found.st_mode)) return {.path = path};
  int descriptor = 0;
  do {
    descriptor = open(name.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) refuse(name, errno);
  return {.descriptor = descriptor};
}

int write_all(int descriptor, std::string_view bytes) {
  const WithoutSignalsOfWrites quiet;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int set_size(int descriptor, uint64_t size_bytes) {
  const WithoutSignalsOfWrites quiet;
  while (ftruncate(descriptor, static_cast<off_t>(size_bytes)) < 0)
    if (errno != EINTR) return errno;
  return 0;
}

}  // namespace coppice
