// Another program: run to its end, or talked to line by line while both live.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace coppice::bench {

using Environment = std::map<std::string, std::string>;  // on top of ours

class Child {
 public:
  // Errors: kIo when the program cannot be started. Its standard error goes to a temporary file.
  Child(std::vector<std::string> command, const Environment& environment = {});
  ~Child();  // ends it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void write_line(const std::string& line);
  // Returns nothing at the end of its output.
  std::optional<std::string> read_line();
  int wait();                  // closes its input; exit code, or 128 + signal
  std::string errors() const;  // what it wrote to standard error so far

 private:
  void close_input();

  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
  std::string buffer_;
  std::optional<int> status_;
};

// Runs a program with its output ignored. `errors` gets its standard error.
struct ChildResult {
  int exit_code = 0;
  double seconds = 0;  // wall clock, from before it is started to after its end
  std::string errors;
};
ChildResult run_child(const std::vector<std::string>& command, const Environment& environment = {});

// The last line that is not blank, for messages.
std::string last_line(const std::string& text);

}  // namespace coppice::bench
