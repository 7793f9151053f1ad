// Runs a command line and keeps what it says.
#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace coppice {

struct Watched {
  int exit_code = -1;  // -1: ended by a signal
  std::string output;  // stdout and stderr

  bool has(const std::string& text) const { return output.find(text) != std::string::npos; }
};

// A shell's command line.
inline Watched watch(const std::string& command) {
  Watched result;
  FILE* pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace coppice
