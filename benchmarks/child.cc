// Child processes (see child.h).
#include "benchmarks/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "benchmarks/measure.h"
#include "core/error.h"

extern char** environ;

namespace coppice::bench {
namespace {

std::vector<std::string> merged_environment(const Environment& changes) {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) all[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void cannot(const char* what, const std::string& program, int error) {
  throw Error(ErrorCode::kIo, fmt::format("cannot {} '{}': {}", what, program, std::strerror(error)));
}

}  // namespace

Child::Child(std::vector<std::string> command, const Environment& environment) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) cannot("start", command[0], errno);
  errors_ = ::memfd_create("errors", MFD_CLOEXEC);
  std::vector<std::string> variables = merged_environment(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
  const int failed = ::posix_spawnp(&pid_, command[0].c_str(), &actions, nullptr, pointers(command).data(),
                                    pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]), ::close(out[1]);
  input_ = in[1], output_ = out[0];
  if (failed == 0) return;
  pid_ = -1;
  ::close(input_), ::close(output_), ::close(errors_);
  cannot("start", command[0], failed);
}

Child::~Child() {
  close_input();
  if (!status_) {
    ::kill(pid_, SIGTERM);
    wait();
  }
  ::close(output_), ::close(errors_);
}

void Child::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Child::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(input_, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot("write to", "child", errno);
    at += static_cast<size_t>(n);
  }
}

std::optional<std::string> Child::read_line() {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char block[4096];
    const ssize_t n = ::read(output_, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    buffer_.append(block, static_cast<size_t>(n));
  }
}

int Child::wait() {
  close_input();
  if (!status_) {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return *status_;
}

std::string Child::errors() const {
  std::string text(static_cast<size_t>(std::max<off_t>(::lseek(errors_, 0, SEEK_END), 0)), '\0');
  const ssize_t n = ::pread(errors_, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

ChildResult run_child(const std::vector<std::string>& command, const Environment& environment) {
  const Clock::time_point start = Clock::now();
  Child child(command, environment);
  while (child.read_line()) {
  }
  ChildResult result;
  result.exit_code = child.wait();
  result.seconds = seconds_since(start);
  result.errors = child.errors();
  return result;
}

std::string last_line(const std::string& text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return "";
  const size_t begin = text.find_last_of('\n', last);
  const size_t first = begin == std::string::npos ? 0 : begin + 1;
  return text.substr(first, last - first + 1);
}

}  // namespace coppice::bench
