// Taichi, the peer: a program of peers/*_taichi.py that runs in a child process and answers line by line.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/child.h"

namespace coppice::bench {

class Taichi {
 public:
  // Waits until the program tells what it has set up. Errors: kUnavailable with the program's last word.
  Taichi(const std::string& python, const std::string& script, const std::vector<std::string>& arguments);

  // Sends a command and returns the line that answers it: one JSON object.
  std::string ask(const std::string& command);
  double ask_number(const std::string& command, const std::string& key);

 private:
  std::string read();
  Child child_;
};

// Reads `"key": number` out of one of the program's lines. Errors: kInternal when there is none.
double number_of(const std::string& line, const std::string& key);

// The python that has Taichi, or why there is none: both left by scripts/bench_peers.sh.
std::optional<std::string> find_taichi_python(std::string& absent);

}  // namespace coppice::bench
