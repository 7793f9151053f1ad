// The exact planner for several pools (see search_pools.h).
#include "executor/plan/search_pools.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"
#include "executor/plan/greedy.h"
#include "executor/plan/pool_choice.h"
#include "executor/plan/verify.h"

namespace coppice::plan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Half of the time is left for the searches.
PoolChoice choose(const Problem& problem, const Pools& pools, const SearchOptions& options,
                  Clock::time_point start) {
  return choose_pools(problem, pools, options.most_nodes, [&] {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) return true;
    return options.most_seconds && seconds_since(start) >= *options.most_seconds / 2;
  });
}

FoundInPool search_part(FoundInPool part, const SearchOptions& options, std::optional<Plan>& known) {
  if (known) {  // it fits, and so nothing is left to be searched
    part.found = {best_greedy_plan(part.problem), lower_bound(part.problem), {}, 0};
    if (known->bytes < part.found.plan.bytes) part.found.plan = std::move(*known);
  } else {
    part.found = search_plan(part.problem, options);
  }
  COPPICE_DCHECK(!find_fault(part.problem, part.found.plan), "a plan that is wrong: {}",
                 find_fault(part.problem, part.found.plan).value_or(""));
  return part;
}

}  // namespace

FoundInPools search_pools(const Problem& problem, const Pools& pools, const SearchOptions& options) {
  COPPICE_CHECK(!options.capacity, "a capacity of {} for all pools together", options.capacity.value_or(0));
  const Clock::time_point start = Clock::now();
  PoolChoice choice = choose(problem, pools, options, start);
  FoundInPools all{
      {std::move(choice.pools), std::vector<int64_t>(problem.buffers.size()), {}}, {}, choice.nodes};
  std::vector<std::vector<uint32_t>> buffers = buffers_by_pool(all.plan.pools, pools.all.size());
  for (size_t p = 0; p < pools.all.size(); ++p) {
    SearchOptions own = options;
    own.capacity = pools.all[p].capacity;
    const auto num_left = static_cast<double>(pools.all.size() - p);
    if (own.most_seconds) own.most_seconds = (*own.most_seconds - seconds_since(start)) / num_left;
    Problem alone = part_of(problem, buffers[p]);
    FoundInPool part = search_part({std::move(buffers[p]), std::move(alone), {}}, own, choice.plans[p]);
    for (size_t i = 0; i < part.buffers.size(); ++i)
      all.plan.offsets[part.buffers[i]] = part.found.plan.offsets[i];
    all.plan.bytes.push_back(part.found.plan.bytes);
    all.nodes += part.found.nodes;
    all.pools.push_back(std::move(part));
  }
  return all;
}

}  // namespace coppice::plan
