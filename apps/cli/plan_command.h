// `coppice plan`: plans the memory of buffers whose times and sizes a file says (executor/plan/csv.h).
#pragma once
#include <atomic>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace coppice::cli {

struct PlanArguments {
  std::string file;                     // "-": standard input
  std::vector<std::string> capacities;  // each is N, or POOL=N
  std::optional<double> budget_s;
  int threads = 0;  // 0: as many as there are cores
  bool json = false;
  std::string svg_file;  // "-": standard output, instead of the table
};

// Prints the file's rows with their offsets, or JSON, on `out`, and a summary on `err`: one line, and one for
// each pool before it where the file has a column of these. Returns the program's exit code: that of an
// interruption when `stop` ended the search, with the best plan until then printed. Errors: kUsage with the
// place in the file, or for a capacity of no pool; kOutOfMemory when nothing fits a capacity, or nothing was
// found that does, and then nothing is printed on `out`.
int plan_command(const PlanArguments& arguments, std::ostream& out, std::ostream& err,
                 const std::atomic<bool>& stop);

}  // namespace coppice::cli
