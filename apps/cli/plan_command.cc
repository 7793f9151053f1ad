// `coppice plan` (see plan_command.h).
#include "apps/cli/plan_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ostream>
#include <thread>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/json_text.h"
#include "apps/output/own_files.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"
#include "core/read_file.h"
#include "core/stop_signals.h"
#include "executor/plan/csv.h"
#include "executor/plan/exact.h"
#include "executor/plan/svg.h"

namespace coppice::cli {
namespace {

plan::ProblemText wait_read_problem(const std::string& file) {
  const bool is_input = file == "-";
  const std::string name = is_input ? "standard input" : file;
  std::string text;
  if (const int problem = read_file(is_input ? "/dev/stdin" : file, text); problem != 0)
    throw Error(ErrorCode::kUsage, fmt::format("cannot read {}: {}", name, std::strerror(problem)));
  try {
    return plan::parse_problem(text, name);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.message(), error.location());
  }
}

// Names at most ten of them.
std::string names_of(const plan::Problem& problem, const std::vector<uint32_t>& buffers) {
  std::vector<std::string_view> names;
  for (const uint32_t i : buffers) names.push_back(problem.buffers[i].id);
  const size_t most = 10, left = names.size() - std::min(names.size(), most);
  names.resize(names.size() - left);
  return fmt::format("{}{}", fmt::join(names, ", "), left > 0 ? fmt::format(" and {} more", left) : "");
}

std::string why_it_does_not_fit(const plan::Problem& problem, const plan::Found& found, int64_t capacity) {
  if (found.lower_bound > capacity)
    return fmt::format("no plan fits {} bytes: at least {} are needed; {} none without the others: {}",
                       capacity, found.lower_bound,
                       found.infeasible.size() == 1 ? "one buffer has"
                                                    : fmt::format("these {} have", found.infeasible.size()),
                       names_of(problem, found.infeasible));
  return fmt::format(
      "no plan was found that fits {} bytes: the smallest needs {}, and none can need less than {}; --budget "
      "gives it more time",
      capacity, found.plan.bytes, found.lower_bound);
}

std::string summary_of(const plan::Problem& problem, const plan::Found& found, double seconds) {
  const size_t n = problem.buffers.size();
  const std::string gap =
      found.is_smallest() ? "no plan needs less"
                          : fmt::format("no plan needs less than {} ({:.1f} % less)", found.lower_bound,
                                        100.0 * static_cast<double>(found.plan.bytes - found.lower_bound) /
                                            static_cast<double>(found.plan.bytes));
  return fmt::format("{} of {} bytes{} in {} bytes; {}; {} nodes, {:.2f} s\n",
                     n == 1 ? "1 buffer" : fmt::format("{} buffers", n), plan::naive_bytes(problem),
                     n == 1 ? "" : " together", found.plan.bytes, gap, found.nodes, seconds);
}

std::string json_of(const plan::Problem& problem, const plan::Found& found) {
  std::string text = fmt::format(
      "{{\n  \"bytes\": {},\n  \"lower_bound\": {},\n  \"naive_bytes\": {},\n  \"is_smallest\": {},\n  "
      "\"nodes\": {},\n"
      "  \"buffers\": [",
      found.plan.bytes, found.lower_bound, plan::naive_bytes(problem), found.is_smallest(), found.nodes);
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    text += fmt::format("{}\n    {{\"id\": {}, \"offset\": {}}}", i == 0 ? "" : ",",
                        json_string(problem.buffers[i].id), found.plan.offsets[i]);
  return text + "\n  ]\n}\n";
}

}  // namespace

int plan_command(const PlanArguments& arguments, std::ostream& out, std::ostream& err,
                 const std::atomic<bool>& stop) {
  if (arguments.json && arguments.svg_file == "-")
    throw Error(ErrorCode::kUsage, "--json and --svg - cannot share the terminal; give --svg a file");
  refuse_input("--svg", arguments.svg_file, "the table", arguments.file);
  const plan::ProblemText text = wait_read_problem(arguments.file);
  plan::SearchOptions options;
  options.capacity = arguments.capacity;
  options.stop = &stop;
  const auto all_cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.threads = arguments.threads > 0 ? arguments.threads : all_cores;
  if (arguments.budget_s) options.most_seconds = arguments.budget_s, options.most_nodes = UINT64_MAX / 2;
  StopSignals::let_finish("the search for a plan");
  log_debug("looking for a plan of {} buffers", text.problem.buffers.size());
  const auto start = std::chrono::steady_clock::now();
  plan::Found found;
  try {
    found = plan::search_plan(text.problem, options);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.message(), {arguments.file});
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const bool fits = !arguments.capacity || found.plan.bytes <= *arguments.capacity;
  if (!fits && !stop)
    throw Error(ErrorCode::kOutOfMemory, why_it_does_not_fit(text.problem, found, *arguments.capacity),
                {arguments.file});
  if (!arguments.svg_file.empty() && arguments.svg_file != "-") {
    AtomicFile file(arguments.svg_file);
    file.write(plan::svg_of(text.problem, found.plan));
    file.commit();
  }
  out << (arguments.svg_file == "-" ? plan::svg_of(text.problem, found.plan)
          : arguments.json          ? json_of(text.problem, found)
                                    : plan::print_plan(text, found.plan));
  out.flush();
  err << summary_of(text.problem, found, passed.count());
  return stop ? kExitInterrupted : kExitDone;
}

}  // namespace coppice::cli
