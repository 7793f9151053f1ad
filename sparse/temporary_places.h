// Where temporaries lie that share memory: those of a function in its arena, those of a node in its cells.
#pragma once
#include <cstdint>

#include "executor/plan/problem.h"

namespace coppice {

// Returns whether each temporary has bytes of its own, as the environment variable COPPICE_TEMPORARIES asks
// with `apart`: a program whose numbers change with it reads a temporary that it has not written. `shared` is
// the default. Errors: kUsage, for any other word.
bool temporaries_lie_apart();

// Returns a plan that ends its search after that many nodes, or, if temporaries lie apart, one in which no
// two buffers share a byte. Errors: those of temporaries_lie_apart().
plan::Plan plan_temporaries(const plan::Problem& problem, uint64_t most_nodes);

}  // namespace coppice
