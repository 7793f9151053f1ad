// Runs the real `coppice` as a user would: another process, its two outputs read through pipes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/apps/geometry_test_files.h"

extern char** environ;

namespace coppice {

struct ProgramResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;
  std::string out;
  std::string err;

  std::vector<std::string> err_lines() const {
    std::vector<std::string> lines;
    for (size_t begin = 0; begin < err.size();) {
      const size_t end = std::min(err.find('\n', begin), err.size());
      lines.push_back(err.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }
  bool err_has(const std::string& text) const { return err.find(text) != std::string::npos; }
};

struct ProgramOptions {
  std::vector<std::string> prefix;                 // put in front: {"taskset", "-c", "0"}
  std::map<std::string, std::string> environment;  // on top of ours
  // Called whenever stderr grew, with all of it so far: where tests send signals.
  std::function<void(pid_t child, const std::string& err)> on_stderr;
};

namespace detail {

inline std::vector<std::string> child_environment(const std::map<std::string, std::string>& changes) {
  // Compiled kernels are kept beside the program, not in the user's own cache: the first test of all
  // compiles.
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    values[text.substr(0, text.find('='))] = text.substr(std::min(text.find('=') + 1, text.size()));
  }
  for (const char* ours :
       {"COPPICE_LOG", "COPPICE_ASSETS", "COPPICE_PROFILE", "COPPICE_DUMP", "COPPICE_PERF",
        "COPPICE_PTX_FOLDER", "COPPICE_DEBUG", "COPPICE_CACHE_MAX_MB", "COPPICE_SIMT_SEED"})
    values.erase(ours);
  const auto build = std::filesystem::path(COPPICE_BINARY).parent_path().parent_path();
  values["COPPICE_CACHE_DIR"] = (build / "test-kernel-cache").string();
  for (const auto& [name, value] : changes) values[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : values) entries.push_back(name + "=" + value);
  return entries;
}

inline std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Reads what is there and appends it; closes and forgets the descriptor at its end. True when something came.
inline bool read_some(int& descriptor, std::string& text) {
  char buffer[4096];
  const ssize_t n = ::read(descriptor, buffer, sizeof buffer);
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR)) {
    ::close(descriptor);
    descriptor = -1;
  }
  return n > 0;
}

}  // namespace detail

// `words` follow the program's name. A program that hangs is killed after ten minutes, so
// that it does not outlive the test.
inline ProgramResult run_program(const std::vector<std::string>& words, const ProgramOptions& options = {}) {
  std::vector<std::string> command = options.prefix;
  command.emplace_back(COPPICE_BINARY);
  command.insert(command.end(), words.begin(), words.end());
  std::vector<std::string> environment = detail::child_environment(options.environment);
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  // A test that runs in the background may ignore Ctrl-C itself; the program must not inherit that.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, command[0].c_str(), &actions, &attributes,
                                    detail::pointers(command).data(), detail::pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  if (failed != 0) throw std::runtime_error("cannot start " + command[0]);
  ProgramResult result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (out[0] >= 0 || err[0] >= 0) {
    pollfd ends[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    ::poll(ends, 2, 1000);
    if (out[0] >= 0 && ends[0].revents != 0) detail::read_some(out[0], result.out);
    if (err[0] >= 0 && ends[1].revents != 0 && detail::read_some(err[0], result.err) && options.on_stderr) {
      options.on_stderr(child, result.err);
    }
    if (std::chrono::steady_clock::now() > deadline) ::kill(child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

// Expects exit code `code`, nothing on stdout, and as stderr's last line the only
// error, with all of `parts` in it.
inline void expect_refused(const ProgramResult& result, int code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, code) << "signal " << result.signal << "\n" << result.err;
  EXPECT_EQ(result.out, "");
  const std::vector<std::string> lines = result.err_lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(result.err.ends_with("\n"));
  EXPECT_TRUE(lines.back().starts_with("coppice: error: ")) << result.err;
  const auto is_error = [](const std::string& line) { return line.find("error: ") != std::string::npos; };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_error), 1) << result.err;
  for (const std::string& part : parts) {
    EXPECT_NE(lines.back().find(part), std::string::npos) << "no '" << part << "' in: " << lines.back();
  }
}

}  // namespace coppice
