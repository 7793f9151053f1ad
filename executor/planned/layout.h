// Where the bytes of a planned function lie, given how many each value needs. Private to planned functions.
#pragma once
#include <string>
#include <vector>

#include "executor/plan/problem.h"
#include "executor/planned/function_plan.h"

namespace coppice::executor {

enum class Placement : uint8_t { kOffsets, kGroups };

// Immutable. Values whose size is not known have no room.
struct Layout {
  struct Place {
    size_t offset = 0, room = 0;  // in the arena, or in the outputs' memory
  };
  std::vector<Place> places;  // by the numbers of sizes
  size_t arena_bytes = 0, output_bytes = 0;
  // The function and what runs in it need these: without a plan, and with any.
  size_t naive_bytes = 0, least_bytes = 0;
  size_t num_values = 0;  // that have a place in the arena
  plan::Problem problem;  // of the function itself, its bodies being one buffer each
  plan::Plan plan;
};

// `sizes`: the most bytes of each value so far; 0: not known. The same sizes give the same layout. Each plan
// is checked by plan::find_fault() in debug builds.
Layout lay_out(const FunctionPlan& function, const std::vector<size_t>& sizes,
               const std::vector<uint32_t>& outputs, Placement placement);

}  // namespace coppice::executor
