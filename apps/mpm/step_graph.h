// The solver's device work as functions: step.graph, bound to the operations that it uses.
#pragma once
#include "executor/loader.h"

namespace coppice::mpm {

// Loaded once for all solvers of the process. @mpm.step, @mpm.batch, @mpm.sort, @mpm.segments.
const executor::LoadedModule& solver_functions();

}  // namespace coppice::mpm
