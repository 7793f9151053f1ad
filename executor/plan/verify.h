// Looks at a plan without a word from who made it.
#pragma once
#include <optional>
#include <string>

#include "executor/plan/pools.h"
#include "executor/plan/problem.h"

namespace coppice::plan {

// Returns what is wrong with the plan, in one line, or nothing: the number of offsets, fixed offsets,
// alignments, two buffers that need the same byte at the same time, its height, and the capacity if there
// is one. Cost: n log n and the pairs of buffers that are needed at the same time.
std::optional<std::string> find_fault(const Problem& problem, const Plan& plan,
                                      std::optional<int64_t> capacity = {});
// The same for several pools: each buffer lies in one that it may lie in, and each pool's plan is right and
// fits its capacity.
std::optional<std::string> find_fault(const Problem& problem, const Pools& pools, const PooledPlan& plan);

}  // namespace coppice::plan
