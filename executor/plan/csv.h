// Planning problems as text, in the format of MiniMalloc's benchmarks: a line of names, then one buffer per
// line, with commas between.
//
//     id,lower,upper,size            needed columns, in any order:
//     b1,0,3,4                         id (or buffer)    any text without a comma, each once
//     b2,3,9,4                         lower (or start, begin)
//                                      upper: the time behind its last; or end: its last one
//                                      size              bytes
//                                    others: alignment; offset, where it must lie; hint, where it might;
//                                    gaps: "2-5 7-9@0:16", times without need [2, 5), and
//                                    [7, 9) with need of its bytes [0, 16) alone;
//                                    pool: "fast|slow", the pools that it may lie in, the preferred one first
//
// An empty field is one that is not there. Other columns are kept, and mean nothing.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "executor/plan/pools.h"
#include "executor/plan/problem.h"

namespace coppice::plan {

struct ProblemText {
  Problem problem;
  // In the order in which the text names them, without capacities. A buffer that names none lies in one whose
  // name is empty, and so do all where there is no such column.
  Pools pools;
  bool has_pools = false;                        // there is a column of pools
  std::vector<std::string> names;                // of the columns
  std::vector<std::vector<std::string>> fields;  // [buffers][columns]
};

// Errors: kInvalidArgument with the place in `file`, which is a name.
ProblemText parse_problem(std::string_view text, const std::string& file);
// Returns the text again, with the plan's offsets in the column of that name, which is the last if there
// was none.
std::string print_plan(const ProblemText& text, const Plan& plan);
// The same with the pool that each buffer lies in, if there is a column of pools.
std::string print_plan(const ProblemText& text, const PooledPlan& plan);

}  // namespace coppice::plan
