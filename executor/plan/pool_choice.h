// Chooses the pool of each buffer that may lie in several.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "executor/plan/pools.h"

namespace coppice::plan {

struct PoolChoice {
  std::vector<uint32_t> pools;  // [buffers]
  // [pools]: a plan within its capacity of what lies in it, in the order of the buffers' indices. Empty where
  // none is known: of pools without a capacity, of those that only buffers without a choice may lie in, and
  // of those that got what fits nowhere.
  std::vector<std::optional<Plan>> plans;
  uint64_t nodes = 0;  // of short searches
};

// Buffers without a choice lie where they must. Those follow all of whose pools have capacities, then the
// rest, both from the largest product of size and time. Each lies in the first of its pools that has no
// capacity, or in which a plan is found of it and all that are there; where greedy planners have room for all
// that would rather lie in a pool, and there are none of the former, these are taken at once. What fits
// nowhere lies in its last pool, where a longer search may still find a plan. So no pool is too full because
// of, or for, a buffer that may lie in one without a capacity.
//
// Plans are looked for by moving nothing, by greedy planners, and by short searches, of `most_nodes` steps
// together at most. All that has a limit, beyond which buffers leave pools with a capacity to others; once
// `stop` says so, nothing is moved any more. Cost: n log n, and for each pool with a capacity and each buffer
// that may lie in it, what it holds. Errors: kInvalidArgument (check(), and offsets that are in each other's
// way).
PoolChoice choose_pools(const Problem& problem, const Pools& pools, uint64_t most_nodes,
                        const std::function<bool()>& stop);

}  // namespace coppice::plan
