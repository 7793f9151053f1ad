// This makes graphs of the executor's functions for panels, with measured times and the longest way
// through.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/viewer/reports.h"
#include "executor/loader.h"

namespace coppice::viewer {

// A launch has the events of its kernel, any other operation those of its own name.
FunctionGraph function_graph(const executor::LoadedFunction& function);

// Returns the operations on the way through the graph that takes longest, in their order; of equal ones
// it takes the one with more operations. Operations that wait for each other in a ring are on none.
std::vector<uint32_t> critical_path(const std::vector<GraphOperation>& operations);

// Gives operations the mean time of a single one of their events, the outermost of those that streams have by
// that name, and marks the critical path.
void measure(FunctionGraph& graph, const std::vector<Timing>& timings);

}  // namespace coppice::viewer
