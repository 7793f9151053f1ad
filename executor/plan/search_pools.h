// The exact planner for several pools: each is a problem of its own, once it is known what lies in it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/plan/exact.h"
#include "executor/plan/pools.h"

namespace coppice::plan {

struct FoundInPool {
  std::vector<uint32_t> buffers;  // that lie in it, by their indices, in order
  Problem problem;                // these alone
  Found found;                    // of that problem: indices and offsets go by it
};

struct FoundInPools {
  PooledPlan plan;
  std::vector<FoundInPool> pools;  // [pools]
  uint64_t nodes = 0;              // of all of them, and of the choice
};

// Says where each buffer lies: in which pool (choose_pools(), pool_choice.h), and there at which offset, by
// search_plan() with the pool's capacity and with these options. In a pool without a capacity the plan is the
// one that search_plan() finds for its buffers alone; in one with a capacity it fits where that one does.
// Bounds, and the buffers that do not fit, are of the buffers that lie there; another choice of pools is not
// looked for.
//
// `options` have no capacity. Their steps are for the choice, and again for each pool. Their time is for all:
// half of it at most is for the choice, and each pool gets an equal share of what those before it left. The
// same problem and steps give the same plan, on any number of threads.
//
// Errors: kInvalidArgument (check(), and offsets that are in each other's way).
FoundInPools search_pools(const Problem& problem, const Pools& pools, const SearchOptions& options = {});

}  // namespace coppice::plan
