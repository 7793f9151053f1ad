// Functions of the executor as panels show them, with measured times and the longest way through.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/viewer/reports.h"
#include "executor/loader.h"

namespace coppice::viewer {

// `kernels`: what is launched by arguments of the function, by their names. Other operations
// have events of their own names.
FunctionGraph function_graph(const executor::LoadedFunction& function,
                             const std::map<std::string, std::string>& kernels);

// The operations on the way through the graph that takes longest, in their order; of equal ones the one with
// more operations. Operations that wait for each other in a ring are on none.
std::vector<uint32_t> critical_path(const std::vector<GraphOperation>& operations);

// Gives operations the mean time of a single one of their events, as far as streams had
// any, and marks the critical path.
void measure(FunctionGraph& graph, const std::vector<Timing>& timings);

}  // namespace coppice::viewer
