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
//                                    [7, 9) with need of its bytes [0, 16) alone
//
// An empty field is one that is not there. Other columns are kept, and mean nothing.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

struct ProblemText {
  Problem problem;
  std::vector<std::string> names;                // of the columns
  std::vector<std::vector<std::string>> fields;  // [buffers][columns]
};

// Errors: kInvalidArgument with the place in `file`, which is a name.
ProblemText parse_problem(std::string_view text, const std::string& file);
// Returns the text again, with the plan's offsets in the column of that name, which is the last if there
// was none.
std::string print_plan(const ProblemText& text, const Plan& plan);

}  // namespace coppice::plan
