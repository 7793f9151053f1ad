// coppice-bench [NAME] [--quick] [--json FILE] [--instructions] [--device D]: the CPU's
// benchmarks, or one, in one table.
//
// Times are medians of repetitions that alternate with the peer's, and need a quiet machine to mean
// something.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>

#include "benchmarks/benchmarks.h"
#include "benchmarks/instructions.h"
#include "benchmarks/measure.h"
#include "core/atomic_file.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

struct Benchmark {
  const char* name;
  void (*run)(Report&);
  bool only_by_name = false;
};
constexpr Benchmark kBenchmarks[] = {
    {"mpm", run_mpm},           {"port", run_port},           {"lookup", run_lookup},
    {"sparse", run_sparse},     {"memory", run_memory},       {"start", run_start},
    {"executor", run_executor}, {"plan", run_plan},           {"poisson", run_poisson},
    {"gpu", run_gpu, true},     {"remote", run_remote, true}, {"viewer", run_viewer_rows, true}};

std::string names() {
  std::string text;
  for (const Benchmark& b : kBenchmarks) text += (text.empty() ? "" : ", ") + std::string(b.name);
  return text;
}

Options parse(int argc, char** argv) {
  Options options;
  std::string device;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick")
      options.quick = true;
    else if (word == "--tiny")
      options.tiny = options.quick = true;
    else if (word == "--instructions")
      options.instructions = true;
    else if (word == "--device" && i + 1 < argc)
      options.device = device = argv[++i];
    else if (word == "--json" && i + 1 < argc)
      options.json = argv[++i];
    else if (!word.starts_with("-") && options.only.empty())
      options.only = word;
    else
      throw Error(ErrorCode::kUsage, fmt::format("usage: coppice-bench [NAME] [--quick] [--json FILE] "
                                                 "[--instructions] [--device NAME]; NAME: {}",
                                                 names()));
  }
  bool known = options.only.empty();
  for (const Benchmark& b : kBenchmarks) known = known || options.only == b.name;
  if (!device.empty() && options.only != "gpu")
    throw Error(ErrorCode::kUsage, "--device is for the benchmark gpu: the others run on the cpu");
  if (!known)
    throw Error(ErrorCode::kUsage, fmt::format("no benchmark '{}'; there are {}", options.only, names()));
  return options;
}

void run(const Options& options) {
  std::optional<AtomicFile> json;  // now, so that a folder that is not there is told before the work is done
  if (!options.json.empty()) json.emplace(options.json);
  Report report(options);
  const std::string machine = machine_text();  // the load before we add to it
  for (const Benchmark& b : kBenchmarks) {
    if (options.only.empty() ? !b.only_by_name : options.only == b.name) b.run(report);
  }
  std::string ceiling = report.machine();
  if (ceiling.empty())
    ceiling = fmt::format("copy: {:.1f} GB/s read and written by 1 thread, beyond the caches",
                          copy_bytes_per_s(1, kBeyondCaches) / 1e9);
  fmt::print("machine: {}\n{}\n\n{}", machine, ceiling, report.table());
  fmt::print(
      "\nratio: ours / peer. floor: what this machine allows at most for the same work, see "
      "docs/benchmarks.md.\n");
  if (json) {
    std::fflush(stdout);  // the file may be standard output
    json->write(report.json());
    json->commit();
  }
  if (!report.failures().empty())
    throw Error(ErrorCode::kInternal, fmt::format("{} could not be measured, the first: {}",
                                                  report.failures().size(), report.failures()[0]));
}

}  // namespace
}  // namespace coppice::bench

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that dies is an error message
  try {
    if (argc == 3 && std::string_view(argv[1]) == "--work") {
      coppice::bench::work(argv[2]);
      return 0;
    }
    coppice::bench::run(coppice::bench::parse(argc, argv));
    return 0;
  } catch (const coppice::Error& error) {
    std::fprintf(stderr, "coppice-bench: error: %s\n", error.what());
    return error.code() == coppice::ErrorCode::kUsage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coppice-bench: error: %s\n", error.what());
    return 1;
  }
}
