// This makes graphs of the executor's functions for panels, with measured times and the longest way
// through.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/viewer/reports.h"
#include "executor/loader.h"

namespace coppice::viewer {

// `kernels` maps the names of the function's arguments to the kernels that they launch. Other operations
// have events of their own names.
FunctionGraph function_graph(const executor::LoadedFunction& function,
                             const std::map<std::string, std::string>& kernels);

// Returns the operations on the way through the graph that takes longest, in their order; of equal ones
// it takes the one with more operations. Operations that wait for each other in a ring are on none.
std::vector<uint32_t> critical_path(const std::vector<GraphOperation>& operations);

// Gives operations the mean time of a single one of their events, as far as streams had
// any, and marks the critical path.
void measure(FunctionGraph& graph, const std::vector<Timing>& timings);

}  // namespace coppice::viewer
