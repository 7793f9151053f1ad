// Keeps what Open MPI's mpiexec says of its own accord out of what the ranks say: that a rank has ended with
// an exit code, which that rank has told the reason of, and that a signal was passed on. That a rank has
// died, and anything else, stays.
#pragma once
#include <string>
#include <string_view>

namespace coppice {

class LauncherText {
 public:
  // Takes more of the launcher's standard error, and returns the lines of it that are to be shown.
  std::string take(std::string_view bytes);
  // Returns what is left at the end.
  std::string rest();

 private:
  void add_line(std::string line, std::string& shown);

  std::string unfinished_;  // line
  std::string block_;       // between two lines of dashes
  bool is_in_block_ = false;
};

}  // namespace coppice
