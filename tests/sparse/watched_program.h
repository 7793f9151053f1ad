// For tests that watch planted_program from outside: runs commands, and finds the lines of planted.kernels.cc.
//
// COPPICE_PLANTED_PROGRAM, COPPICE_PLANTED_KERNELS and COPPICE_TSAN_SUPPRESSIONS are paths that CMake gives.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
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

// The number of the line that ends with "// mark: <mark>"; 0 and a failure when there is none.
inline int planted_line(const std::string& mark) {
  std::ifstream in(COPPICE_PLANTED_KERNELS);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.ends_with("// mark: " + mark)) return number;
  }
  ADD_FAILURE() << "no mark '" << mark << "' in " << COPPICE_PLANTED_KERNELS;
  return 0;
}
inline std::string planted_place(const std::string& mark) {
  return fmt::format("planted.kernels.cc:{}", planted_line(mark));
}

}  // namespace coppice
