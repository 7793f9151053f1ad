// The values of `coppice plan --capacity`: N, or POOL=N.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "executor/plan/csv.h"

namespace coppice::cli {

struct PoolCapacity {
  std::string pool;  // "": N alone, for the buffers that name no pool
  int64_t bytes = 0;
};
// Errors: kUsage, where a value is neither N nor POOL=N.
std::vector<PoolCapacity> parse_capacities(const std::vector<std::string>& values);

// Gives pools of the table in `file` their capacities. Errors: kUsage, where one is given twice for a pool,
// or for one that is not in the table.
void set_capacities(plan::ProblemText& text, const std::vector<PoolCapacity>& capacities,
                    const std::string& file);

}  // namespace coppice::cli
