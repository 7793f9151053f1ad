// The executor benchmark: what async values, reference counts and functions cost, beside the standard
// library's, Boost's and oneTBB's.
//
// One thread, nanoseconds of CPU time for one operation, medians of repetitions that alternate with the
// peer's. The floor is the same work written by hand for that one purpose: the atomic operations that it
// cannot do without, on memory from the same pool. A thread is started and joined before anything is timed:
// until a process has had a second one, libstdc++ counts shared_ptr's references without atomic operations.
#include <fmt/format.h>

#include <thread>

#include "benchmarks/benchmarks.h"
#include "benchmarks/executor_cases.h"
#include "benchmarks/instructions.h"
#include "benchmarks/measure.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

void become_multithreaded() {
  std::thread([] {}).join();
}

void run_group(Report& report, const std::string& group, const std::vector<MicroCase>& cases) {
  report.begin("executor, " + group);
  const int repetitions = report.options().tiny ? 1 : report.options().quick ? 5 : 51;
  for (const MicroCase& c : cases) {
    const int n = report.options().tiny ? 1 : c.n;
    std::vector<Contestant> all{{[&] { c.ours(n); }, n}, {[&] { c.floor(n); }, n}};
    if (c.peer) all.push_back({[&] { c.peer(n); }, n});
    const std::vector<double> seconds = interleaved_medians(all, repetitions);
    const auto ns = [&](double s) { return s * 1e9 / c.units; };
    Row row;
    row.name = "executor/" + c.name, row.unit = c.unit, row.target = c.target;
    row.ours = ns(seconds[0]), row.floor = ns(seconds[1]);
    row.peer_name = c.peer_name, row.detail = c.detail;
    if (c.peer) row.peer = ns(seconds[2]);
    if (report.options().instructions) {
      row.instructions = wait_instructions("executor/" + c.name + "/0");
      if (c.peer) row.peer_instructions = wait_instructions("executor/" + c.name + "/1");
    }
    report.add(row);
  }
}

}  // namespace

// Case `name`: ours (0) or the peer (1).
double work_on_executor(const std::string& name, size_t which, const WorkCounter& counter) {
  become_multithreaded();
  constexpr int kTimes = 8;
  for (const auto& cases : {async_value_cases(), ref_count_cases(), graph_cases()}) {
    for (const MicroCase& c : cases) {
      const MicroCase::Run& run = which == 0 ? c.ours : c.peer;
      if (c.name != name || !run) continue;
      const int n = c.n >= 100 ? 100 : 1;
      counter.count([&] { run(n); }, kTimes);
      return static_cast<double>(kTimes) * n * c.units;
    }
  }
  throw Error(ErrorCode::kUsage, fmt::format("--work executor/{}/{}: no such case", name, which));
}

void run_executor(Report& report) {
  become_multithreaded();
  run_group(report, "async values", async_value_cases());
  run_group(report, "reference counts", ref_count_cases());
  run_group(report, "functions", graph_cases());
}

}  // namespace coppice::bench
