// The exact planner: the smallest plan there is, or one that fits a capacity, by search.
//
// It can be stopped at any time, and has a plan from the start: the best greedy one, than which it never
// returns a worse one. It looks for plans of several heights in turn, in several orders, and each time goes
// further, so that a bad choice at the beginning costs little.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

struct SearchOptions {
  // Ends the search with the first plan that fits. Empty: the smallest plan is looked for.
  std::optional<int64_t> capacity;
  // Ends it after so many steps, each of some microseconds; where a step takes longer, because there are more
  // than 256 buffers, after fewer, in about the same time. The same problem and number give the same plan.
  uint64_t most_nodes = 2'000'000;
  // Ends it after this time; what is found then depends on the machine.
  std::optional<double> most_seconds;
  const std::atomic<bool>* stop = nullptr;  // ends it once this is true
  // How many threads search at most. What is found does not depend on it, unless time or `stop` ends the
  // search.
  int threads = 1;
};

struct Found {
  Plan plan;                // the smallest that was found, whether it fits or not
  int64_t lower_bound = 0;  // no plan needs less: shown by what is needed at one time, or by search
  // Buffers, by index, that have no plan within the capacity, where that was shown. Without any one of them
  // the others have, but for those with offsets, which are all there, and for those of which nothing was
  // shown in time.
  std::vector<uint32_t> infeasible;
  uint64_t nodes = 0;

  bool is_smallest() const { return plan.bytes == lower_bound; }
};

// The problem has at most this many buffers, or greedy plans are all that is tried.
inline constexpr size_t kMostSearched = 4096;

// Errors: kInvalidArgument (check(), and offsets that are in each other's way).
Found search_plan(const Problem& problem, const SearchOptions& options = {});

}  // namespace coppice::plan
