// For tests of GPU code without a GPU: kernels as PTX for several targets, assembled by ptxas where there is
// one.
//
// A test makes a list of cases, one per kernel, and hands it to check_ptx_cases(); any folder's tests may do
// so with their own kernels. Failures are GoogleTest's.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/jit/specializer.h"

namespace coppice::ptx_check {

struct Case {
  std::string name;
  // The kernel as PTX, such as Program::ptx() gives it.
  std::function<std::string(jit::PtxTarget target)> compile;
};

// The first of `folders`' files of this name that exists, or "".
inline std::string first_existing(const std::vector<std::filesystem::path>& folders, const char* file) {
  std::error_code ignored;
  for (const auto& folder : folders) {
    if (!folder.empty() && std::filesystem::exists(folder / file, ignored)) return (folder / file).string();
  }
  return "";
}
inline std::filesystem::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
inline std::filesystem::path cuda_home() {
  return environment_path("CUDA_HOME").empty() ? "/usr/local/cuda" : environment_path("CUDA_HOME");
}
inline std::string ptxas_path() {
  std::vector<std::filesystem::path> folders;
  std::stringstream path(environment_path("PATH").string());
  for (std::string folder; std::getline(path, folder, ':');) folders.emplace_back(folder);
  folders.push_back(cuda_home() / "bin");
  return first_existing(folders, "ptxas");
}

// The assembler, ptxas, says this of one kernel.
struct Usage {
  int registers = 0;
  int spill_bytes = 0;  // stored
  int stack_bytes = 0;
  std::string error;  // ptxas' words when it refuses the text
};
inline Usage assemble(const std::string& ptxas, const std::string& ptx, int sm,
                      const std::string& flags = "") {
  std::string folder = (std::filesystem::temp_directory_path() / "coppice_ptx_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return {0, 0, 0, "no temporary folder"};
  std::ofstream(folder + "/kernel.ptx") << ptx;
  const std::string command =
      fmt::format("'{0}' -arch=sm_{1} -v {3} '{2}/kernel.ptx' -o '{2}/kernel.cubin' >'{2}/words' 2>&1", ptxas,
                  sm, folder, flags);
  const int status = std::system(command.c_str());
  std::stringstream words;
  words << std::ifstream(folder + "/words").rdbuf();
  std::filesystem::remove_all(folder);
  Usage usage;
  if (status != 0) usage.error = words.str();
  const std::string text = words.str();
  std::smatch match;
  if (std::regex_search(text, match, std::regex("Used ([0-9]+) registers")))
    usage.registers = std::stoi(match[1]);
  if (std::regex_search(text, match, std::regex("([0-9]+) bytes spill stores")))
    usage.spill_bytes = std::stoi(match[1]);
  if (std::regex_search(text, match, std::regex("([0-9]+) bytes stack frame")))
    usage.stack_bytes = std::stoi(match[1]);
  return usage;
}

// Calls of what the text itself does not define would only fail when a GPU's driver links it.
inline void expect_no_unresolved_calls(const std::string& name, const std::string& ptx) {
  EXPECT_EQ(ptx.find(".extern .func"), std::string::npos)
      << name << ": " << ptx.substr(ptx.find(".extern .func"), 200);
  EXPECT_NE(ptx.find(".visible .entry "), std::string::npos) << name << " has no entry";
}

// Compiles all cases for all targets, checks the texts, assembles them with `ptxas` unless it is empty, and
// prints a table of registers, spilled and stack bytes.
inline void check_ptx_cases(const std::vector<Case>& cases, const std::string& ptxas) {
  static constexpr int kTargets[] = {75, 80, 90};
  fmt::print("{:<32} {:>24} {:>24} {:>24}\n{:<32} {:>24} {:>24} {:>24}\n", "kernel", "sm_75", "sm_80",
             "sm_90", "", "regs spill stack", "regs spill stack", "regs spill stack");
  for (const Case& c : cases) {
    std::string row = fmt::format("{:<32}", c.name);
    for (int sm : kTargets) {
      std::string ptx;
      try {
        ptx = c.compile({sm});
      } catch (const Error& e) {
        ADD_FAILURE() << c.name << " for sm_" << sm << ": " << e.what();
        continue;
      }
      expect_no_unresolved_calls(c.name, ptx);
      if (ptxas.empty()) continue;
      const Usage usage = assemble(ptxas, ptx, sm);
      EXPECT_EQ(usage.error, "") << c.name << " for sm_" << sm;
      EXPECT_EQ(usage.spill_bytes, 0) << c.name << " for sm_" << sm;
      row += fmt::format(
          " {:>24}", fmt::format("{:>4} {:>5} {:>5}", usage.registers, usage.spill_bytes, usage.stack_bytes));
    }
    fmt::print("{}\n", row);
  }
}

}  // namespace coppice::ptx_check
