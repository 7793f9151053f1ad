// Counting instructions (see instructions.h).
#include "benchmarks/instructions.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define COPPICE_HAS_CALLGRIND 1
#endif

#include "apps/cli/system_info.h"
#include "benchmarks/child.h"
#include "core/error.h"
#include "core/program_file.h"

namespace coppice::bench {
namespace {

// The number in "==123== Collected : 456". -1 when there is none.
double collected(const std::string& log) {
  const std::string key = "Collected : ";
  const size_t at = log.rfind(key);
  return at == std::string::npos ? -1 : std::strtod(log.c_str() + at + key.size(), nullptr);
}

}  // namespace

void WorkCounter::count(const std::function<void()>& call, int calls) const {
  call();
#ifdef COPPICE_HAS_CALLGRIND
  CALLGRIND_START_INSTRUMENTATION;
#endif
  for (int i = 0; i < calls; ++i) call();
#ifdef COPPICE_HAS_CALLGRIND
  CALLGRIND_STOP_INSTRUMENTATION;
#endif
}

void work(const std::string& name) {
  const size_t first = name.find('/'), last = name.rfind('/');
  if (first == std::string::npos || first == last)
    throw Error(ErrorCode::kUsage, fmt::format("--work {}: expected BENCHMARK/CASE/NUMBER", name));
  const std::string benchmark = name.substr(0, first), which = name.substr(first + 1, last - first - 1);
  const WorkCounter counter;
  double units = 0;
  if (benchmark == "lookup")
    units = work_on_lookup(which, std::strtoul(name.c_str() + last + 1, nullptr, 10), counter);
  else if (benchmark == "sparse")
    units = work_on_sparse(which, counter);
  else if (benchmark == "mpm")
    units = work_on_mpm(which, counter);
  else if (benchmark == "executor")
    units = work_on_executor(which, std::strtoul(name.c_str() + last + 1, nullptr, 10), counter);
  else
    throw Error(ErrorCode::kUsage, fmt::format("--work {}: no such benchmark", name));
  fmt::print("{}\n", units);
}

std::optional<double> wait_instructions(const std::string& name) {
#ifndef COPPICE_HAS_CALLGRIND
  fmt::print(stderr, "bench: no instruction counts: built without valgrind's headers\n");
  return {};
#else
  const auto valgrind = cli::find_program("valgrind");
  if (!valgrind) {
    fmt::print(stderr, "bench: no instruction counts: valgrind is not installed\n");
    return {};
  }
  fmt::print(stderr, "bench: instructions of {}\n", name);
  Child child({valgrind->string(), "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null",
               program_file().string(), "--work", name});
  const std::optional<std::string> units = child.read_line();
  const int exit_code = child.wait();
  const double count = collected(child.errors());
  if (units && exit_code == 0 && count > 0) return count / std::strtod(units->c_str(), nullptr);
  fmt::print(stderr, "bench: no instruction count for {}: valgrind's exit code is {}: {}\n", name, exit_code,
             last_line(child.errors()));
  return {};
#endif
}

}  // namespace coppice::bench
