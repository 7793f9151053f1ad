// Particles in the order of their ids, shared out over the ranks: what files have (see solver_part.h).
//
// Where no id is missing, a particle's row is its id. Else the ranks look for the ids at which their rows
// begin, by halving, and each brings the ids that it gets into their order: none of them knows all.
#pragma once
#include <span>

#include "apps/mpm/solver_output.h"
#include "apps/mpm/solver_state.h"

namespace coppice::mpm {

// SolverPart::wait_rows().
template <int D>
ParticleSnapshot wait_rows(const SolverState<D>& state, const SnapshotParts& parts,
                           std::span<const uint64_t> ends);

}  // namespace coppice::mpm
