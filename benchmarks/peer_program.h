// A peer in Python: a program of peers/ that runs in a child process and answers line by line.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/child.h"

namespace coppice::bench {

class PeerProgram {
 public:
  // `package` is "taichi" or "warp". Waits until the program tells what it has set up. Errors:
  // kUnavailable with the program's last word.
  PeerProgram(const std::string& package, const std::string& python, const std::string& script,
              const std::vector<std::string>& arguments);

  // Sends a command and returns the line that answers it: one JSON object.
  std::string ask(const std::string& command);
  double ask_number(const std::string& command, const std::string& key);

 private:
  std::string read();
  std::string script_;
  Child child_;
};

// Reads `"key": number` out of one of the program's lines. Errors: kInternal when there is none.
double number_of(const std::string& line, const std::string& key);

// The python that has the package, or why there is none: both left by scripts/bench_peers.sh.
std::optional<std::string> find_peer_python(const std::string& package, std::string& absent);

// One that may be absent, or become so when it fails; then name() says why.
class OptionalPeer {
 public:
  OptionalPeer(std::string title, std::string absent)
      : title_(std::move(title)), absent_(std::move(absent)) {}
  bool is_there() const { return program_ != nullptr; }
  std::string name() const { return is_there() ? title_ : absent_; }
  // Nothing when it is not there.
  std::optional<double> ask(const std::string& command, const std::string& key);
  std::optional<std::string> ask_line(const std::string& command);  // for more than one of its numbers

 protected:
  void start(const std::string& package, const std::string& script,
             const std::vector<std::string>& arguments);

 private:
  void guard(const std::function<void()>& call);

  std::string title_, absent_;
  std::unique_ptr<PeerProgram> program_;
};

}  // namespace coppice::bench
