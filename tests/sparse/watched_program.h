// For tests that watch planted_program from outside: finds the lines of planted.kernels.cc.
//
// COPPICE_PLANTED_PROGRAM, COPPICE_PLANTED_KERNELS and COPPICE_TSAN_SUPPRESSIONS are paths that CMake gives.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/core/watch_command.h"

namespace coppice {

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
