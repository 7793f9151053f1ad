// The plan benchmark: how much memory plans need beside what none can be below, and how long planning takes.
//
// MiniMalloc's problems A to F are planned, with their capacity and for the smallest plan; and random ones
// as large as programs are. MiniMalloc is in no package that could be measured here: its times are those
// that its authors published, on a machine that they do not name.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "benchmarks/benchmarks.h"
#include "core/error.h"
#include "core/read_file.h"
#include "executor/plan/csv.h"
#include "executor/plan/exact.h"
#include "executor/plan/greedy.h"
#include "executor/plan/verify.h"

namespace coppice::bench {
namespace {

constexpr int64_t kCapacity = 1'048'576;

struct Case {
  const char* name;
  double minimalloc_s;  // published
};
constexpr Case kCases[] = {{"A", 4.910}, {"B", 3.661}, {"C", 0.637},
                           {"D", 2.674}, {"E", 3.717}, {"F", 5.358}};

plan::Problem wait_read_problem(const std::string& name) {
  const std::string file = fmt::format("{}{}.{}.csv", COPPICE_PLAN_DATA, name, kCapacity);
  std::string text;
  if (read_file(file, text) != 0) throw Error(ErrorCode::kNotFound, fmt::format("{}: cannot be read", file));
  return plan::parse_problem(text, file).problem;
}

template <class F>
double median_s(int repetitions, const F& function) {
  std::vector<double> all;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    function();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(all.begin(), all.begin() + repetitions / 2, all.end());
  return all[static_cast<size_t>(repetitions) / 2];
}

void add_bytes(Report& report, const std::string& name, int64_t bytes, int64_t bound, std::string detail) {
  Row row;
  row.name = "plan/" + name, row.unit = "bytes/bound";
  row.ours = static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, bound));
  row.floor = 1;
  row.detail = std::move(detail);
  report.add(row);
}

void run_capacities(Report& report) {
  double ours = 0, published = 0, floor = 0;
  const int repetitions = report.options().quick ? 1 : 5;
  for (const Case& c : kCases) {
    const plan::Problem problem = wait_read_problem(c.name);
    plan::Found found;
    const double seconds =
        median_s(repetitions, [&] { found = search_plan(problem, {.capacity = kCapacity}); });
    if (found.plan.bytes > kCapacity)
      throw Error(ErrorCode::kInternal, fmt::format("{} does not fit", c.name));
    // Whoever makes a plan looks at each pair of buffers that meet, as who looks at the plan does.
    const double look = median_s(repetitions, [&] { find_fault(problem, found.plan); });
    ours += seconds, published += c.minimalloc_s, floor += look;
    Row row;
    row.name = fmt::format("plan/{}_fits", c.name), row.unit = "s", row.ours = seconds, row.floor = look;
    row.peer = c.minimalloc_s, row.peer_name = "MiniMalloc, as published";
    row.detail =
        fmt::format("{} buffers into {} bytes; {} nodes", problem.buffers.size(), kCapacity, found.nodes);
    report.add(row);
  }
  Row row;
  row.name = "plan/A_to_F_fit", row.unit = "s", row.ours = ours, row.floor = floor;
  row.peer = published, row.peer_name = "MiniMalloc, as published", row.target = ratio_at_most(0.5);
  row.detail = "one core";
  report.add(row);
}

void run_smallest(Report& report) {
  const uint64_t nodes = report.options().quick ? 20'000 : 2'000'000;
  for (const Case& c : kCases) {
    const plan::Problem problem = wait_read_problem(c.name);
    const int64_t bound = lower_bound(problem);
    const plan::Plan by_size = greedy_plan(problem, plan::Order::kSize, plan::Fit::kSmallestGap);
    add_bytes(report, fmt::format("{}_by_size", c.name), by_size.bytes, bound, "greedy, the largest first");
    add_bytes(report, fmt::format("{}_greedy", c.name), best_greedy_plan(problem).bytes, bound,
              "the best of 12");
    const plan::Found found = search_plan(problem, {.most_nodes = nodes});
    add_bytes(report, fmt::format("{}_search", c.name), found.plan.bytes, bound,
              fmt::format("{} bytes{}, {} nodes", found.plan.bytes,
                          found.is_smallest() ? ", none needs less" : "", found.nodes));
  }
}

// Values of a program: most are used soon, some late.
plan::Problem random_program(int64_t n) {
  std::mt19937_64 random(1);
  plan::Problem problem;
  for (int64_t i = 0; i < n; ++i) {
    plan::Buffer b;
    b.id = std::to_string(i);
    b.begin = i;
    b.end = i + 1 + static_cast<int64_t>(random() % (random() % 20 == 0 ? 400 : 20));
    b.bytes = int64_t{64} << random() % 14;
    problem.buffers.push_back(b);
  }
  return problem;
}

void run_large(Report& report) {
  const int64_t n = report.options().quick ? 10'000 : 100'000;
  const plan::Problem problem = random_program(n);
  plan::Plan plan;
  Row row;
  row.name = "plan/greedy_large", row.unit = "s", row.target = ours_at_most(1);
  row.ours = median_s(3, [&] { plan = best_greedy_plan(problem); });
  row.floor = median_s(3, [&] { find_fault(problem, plan); });
  row.detail = fmt::format("{} values, the best of 4; {:.3f} of the bound", n,
                           static_cast<double>(plan.bytes) / static_cast<double>(lower_bound(problem)));
  report.add(row);
}

}  // namespace

void run_plan(Report& report) {
  report.begin("plans");
  run_capacities(report);
  run_smallest(report);
  run_large(report);
}

}  // namespace coppice::bench
