// `coppice plan` (see plan_command.h).
#include "apps/cli/plan_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <thread>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/json_text.h"
#include "apps/cli/pool_capacities.h"
#include "apps/output/own_files.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"
#include "core/read_file.h"
#include "core/stop_signals.h"
#include "executor/plan/csv.h"
#include "executor/plan/search_pools.h"
#include "executor/plan/svg.h"

namespace coppice::cli {
namespace {

plan::ProblemText wait_read_problem(const std::string& file) {
  const bool is_input = file == "-";
  const std::string name = is_input ? "standard input" : file;
  std::string text;
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (const int problem = read_file(is_input ? "/dev/stdin" : file, text, kMostBytes); problem != 0)
    throw Error(ErrorCode::kUsage, fmt::format("cannot read {}: {}", name, why_unread(problem, kMostBytes)));
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

std::string pool_text(const plan::Pool& pool) {
  return pool.name.empty() ? "the buffers without a pool" : fmt::format("pool '{}'", pool.name);
}

// Says it of the pool whose index is `p`.
std::string why_it_does_not_fit(const plan::ProblemText& text, const plan::FoundInPools& found, size_t p) {
  const plan::FoundInPool& in = found.pools[p];
  const plan::Pool& pool = text.pools.all[p];
  const std::string where = text.has_pools
                                ? fmt::format(" {} {}", pool.name.empty() ? "for" : "of", pool_text(pool))
                                : std::string();
  const int64_t capacity = pool.capacity.value_or(0);
  if (in.found.lower_bound <= capacity)
    return fmt::format(
        "no plan was found that fits {} bytes{}: the smallest needs {}, and none can need less than {}; "
        "--budget gives it more time",
        capacity, where, in.found.plan.bytes, in.found.lower_bound);
  const auto has_choice = [&](uint32_t i) { return text.pools.choices[in.buffers[i]].size() > 1; };
  const bool is_only_choice =
      std::none_of(in.found.infeasible.begin(), in.found.infeasible.end(), has_choice);
  return fmt::format("no plan fits {} bytes{}: at least {} are needed; {} none without the others{}: {}",
                     capacity, where, in.found.lower_bound,
                     in.found.infeasible.size() == 1
                         ? "one buffer has"
                         : fmt::format("these {} have", in.found.infeasible.size()),
                     is_only_choice ? "" : ", unless more of them lie in other pools",
                     names_of(in.problem, in.found.infeasible));
}

// `capacity` follows the bytes that are needed.
std::string needs_of(const plan::Problem& problem, const plan::Found& found, const std::string& capacity) {
  const std::string gap =
      found.is_smallest() ? "no plan needs less"
                          : fmt::format("no plan needs less than {} ({:.1f} % less)", found.lower_bound,
                                        100.0 * static_cast<double>(found.plan.bytes - found.lower_bound) /
                                            static_cast<double>(found.plan.bytes));
  const size_t n = problem.buffers.size();
  return fmt::format("{} of {} bytes{} in {}{} bytes; {}", n == 1 ? "1 buffer" : fmt::format("{} buffers", n),
                     plan::naive_bytes(problem), n == 1 ? "" : " together", found.plan.bytes, capacity, gap);
}

std::string of_capacity(const plan::Pool& pool) {
  return pool.capacity ? fmt::format(" of {}", *pool.capacity) : "";
}

std::string summary_of(const plan::ProblemText& text, const plan::FoundInPools& found, double seconds) {
  const std::string effort = fmt::format("{} nodes, {:.2f} s\n", found.nodes, seconds);
  if (!text.has_pools)
    return fmt::format("{}; {}", needs_of(text.problem, found.pools.front().found, ""), effort);
  std::string lines;
  for (size_t p = 0; p < found.pools.size(); ++p) {
    const plan::Pool& pool = text.pools.all[p];
    lines += fmt::format("{}: {}\n", pool_text(pool),
                         needs_of(found.pools[p].problem, found.pools[p].found, of_capacity(pool)));
  }
  return fmt::format("{}{} buffers of {} bytes together in {} pools; {}", lines, text.problem.buffers.size(),
                     plan::naive_bytes(text.problem), found.pools.size(), effort);
}

std::string json_of_pools(const plan::ProblemText& text, const plan::FoundInPools& found) {
  std::string json = "[";
  for (size_t p = 0; p < found.pools.size(); ++p) {
    const plan::Pool& pool = text.pools.all[p];
    const plan::FoundInPool& in = found.pools[p];
    json += fmt::format(
        "{}\n    {{\"name\": {}, \"capacity\": {}, \"buffers\": {}, \"bytes\": {}, \"lower_bound\": {}, "
        "\"naive_bytes\": {}, \"is_smallest\": {}}}",
        p == 0 ? "" : ",", json_string(pool.name), pool.capacity ? std::to_string(*pool.capacity) : "null",
        in.buffers.size(), in.found.plan.bytes, in.found.lower_bound, plan::naive_bytes(in.problem),
        in.found.is_smallest());
  }
  return json + "\n  ]";
}

// With pools, bytes and bounds are theirs.
std::string json_of(const plan::ProblemText& text, const plan::FoundInPools& found) {
  std::string json = "{\n";
  if (text.has_pools) {
    json += fmt::format("  \"naive_bytes\": {},\n", plan::naive_bytes(text.problem));
  } else {
    const plan::Found& one = found.pools.front().found;
    json += fmt::format(
        "  \"bytes\": {},\n  \"lower_bound\": {},\n  \"naive_bytes\": {},\n  \"is_smallest\": {},\n",
        one.plan.bytes, one.lower_bound, plan::naive_bytes(text.problem), one.is_smallest());
  }
  json += fmt::format("  \"nodes\": {},\n", found.nodes);
  if (text.has_pools) json += fmt::format("  \"pools\": {},\n", json_of_pools(text, found));
  json += "  \"buffers\": [";
  for (size_t i = 0; i < text.problem.buffers.size(); ++i) {
    const std::string pool =
        text.has_pools ? fmt::format(", \"pool\": {}", json_string(text.pools.all[found.plan.pools[i]].name))
                       : "";
    json += fmt::format("{}\n    {{\"id\": {}{}, \"offset\": {}}}", i == 0 ? "" : ",",
                        json_string(text.problem.buffers[i].id), pool, found.plan.offsets[i]);
  }
  return json + "\n  ]\n}\n";
}

std::string svg_of(const plan::ProblemText& text, const plan::FoundInPools& found) {
  if (!text.has_pools) return plan::svg_of(text.problem, found.pools.front().found.plan);
  std::vector<plan::TitledPlan> parts;
  for (size_t p = 0; p < found.pools.size(); ++p) {
    const plan::Pool& pool = text.pools.all[p];
    const plan::FoundInPool& in = found.pools[p];
    parts.push_back({fmt::format("{}: {} buffers in {}{} bytes", pool_text(pool), in.buffers.size(),
                                 in.found.plan.bytes, of_capacity(pool)),
                     in.problem, in.found.plan});
  }
  return plan::svg_of(parts);
}

plan::FoundInPools search(const plan::ProblemText& text, const PlanArguments& arguments,
                          const std::atomic<bool>& stop) {
  plan::SearchOptions options;
  options.stop = &stop;
  const auto all_cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.threads = arguments.threads > 0 ? arguments.threads : all_cores;
  if (arguments.budget_s) options.most_seconds = arguments.budget_s, options.most_nodes = UINT64_MAX / 2;
  try {
    return plan::search_pools(text.problem, text.pools, options);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.message(), {arguments.file});
  }
}

void check_capacities(const plan::ProblemText& text, const plan::FoundInPools& found,
                      const std::string& file) {
  for (size_t p = 0; p < found.pools.size(); ++p) {
    const std::optional<int64_t> capacity = text.pools.all[p].capacity;
    if (capacity && found.plan.bytes[p] > *capacity)
      throw Error(ErrorCode::kOutOfMemory, why_it_does_not_fit(text, found, p), {file});
  }
}

}  // namespace

int plan_command(const PlanArguments& arguments, std::ostream& out, std::ostream& err,
                 const std::atomic<bool>& stop) {
  if (arguments.json && arguments.svg_file == "-")
    throw Error(ErrorCode::kUsage, "--json and --svg - cannot share the terminal; give --svg a file");
  refuse_input("--svg", arguments.svg_file, "the table", arguments.file);
  const std::vector<PoolCapacity> capacities = parse_capacities(arguments.capacities);
  plan::ProblemText text = wait_read_problem(arguments.file);
  set_capacities(text, capacities, arguments.file == "-" ? "standard input" : arguments.file);
  StopSignals::let_finish("the search for a plan");
  log_debug("looking for a plan of {} buffers", text.problem.buffers.size());
  const auto start = std::chrono::steady_clock::now();
  const plan::FoundInPools found = search(text, arguments, stop);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  if (!stop) check_capacities(text, found, arguments.file);
  if (!arguments.svg_file.empty() && arguments.svg_file != "-") {
    AtomicFile file(arguments.svg_file);
    file.write(svg_of(text, found));
    file.commit();
  }
  out << (arguments.svg_file == "-" ? svg_of(text, found)
          : arguments.json          ? json_of(text, found)
                                    : plan::print_plan(text, found.plan));
  out.flush();
  err << summary_of(text, found, passed.count());
  return stop ? kExitInterrupted : kExitDone;
}

}  // namespace coppice::cli
