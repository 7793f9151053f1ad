// `coppice plan`: plans the memory of buffers whose times and sizes a file says (executor/plan/csv.h).
#pragma once
#include <atomic>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

namespace coppice::cli {

struct PlanArguments {
  std::string file;  // "-": standard input
  std::optional<int64_t> capacity;
  std::optional<double> budget_s;
  int threads = 0;  // 0: as many as there are cores
  bool json = false;
  std::string svg_file;  // "-": standard output, instead of the table
};

// Prints the file's rows with their offsets, or JSON, on `out`, and a summary in one line on `err`. Returns
// the program's exit code: that of an interruption when `stop` ended the search, with the best plan until
// then printed. Errors: kUsage with the place in the file; kOutOfMemory when nothing fits the capacity, or
// nothing was found that does, and then nothing is printed on `out`.
int plan_command(const PlanArguments& arguments, std::ostream& out, std::ostream& err,
                 const std::atomic<bool>& stop);

}  // namespace coppice::cli
