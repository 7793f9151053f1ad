// Instructions per unit of work, counted by valgrind's callgrind in a child process.
//
// The child is this program again, with `--work NAME`: it prepares a small workload, runs it once,
// and has valgrind count what the following calls execute, on all threads, compiled kernels included.
// The CPU that valgrind emulates has AVX2 at most, so on a larger one the counts are those of
// narrower vectors than the times.
#pragma once
#include <functional>
#include <optional>
#include <string>

namespace coppice::bench {

class WorkCounter {
 public:
  // Calls once unseen, then `calls` times counted.
  void count(const std::function<void()>& call, int calls) const;
};

// Does the work of `--work NAME`: "benchmark/case/number". Prints how many units of work were counted.
// Errors: kUsage for a name that is not known.
void work(const std::string& name);

// Counts NAME's instructions per unit. Nothing where there is no valgrind or it fails; a
// line on standard error says why.
std::optional<double> wait_instructions(const std::string& name);

// The workloads; each returns its units of work.
double work_on_lookup(const std::string& name, size_t compiler, const WorkCounter& counter);
double work_on_sparse(const std::string& name, const WorkCounter& counter);
double work_on_mpm(const std::string& name, const WorkCounter& counter);
double work_on_executor(const std::string& name, size_t which, const WorkCounter& counter);

}  // namespace coppice::bench
