// A solver over the ranks of a job: the first rank has it, as if it were alone, and what it calls there the
// other ranks do, too.
//
//     if (cluster.rank() != 0) return follow(device, scene, {.cluster = cluster});
//     const auto solver = Solver::create(device, scene, {.cluster = cluster});
//
// Each rank has a part of the grid and the particles in it (rank_steps.h). All give the same scene. Particles
// and blocks of all ranks come to the first one when they are asked for; what each rank can do with its own
// part they do together (solver_part.h). Stats are of all, and so is the number of particles; what memory is
// used is told of the first rank.
#pragma once
#include <memory>

#include "apps/mpm/solver.h"

namespace coppice::mpm {

// Does what the first rank's solver does, until that one is destroyed. Errors: where only this rank has them,
// and the others cannot go on without it: the process is to end then. What all ranks have met the first one
// tells.
void follow(IntrusivePtr<Device> device, const scene::SceneConfig& scene, const SolverOptions& options);

// Solver::create() calls this on the first rank. Errors: kInvalidArgument on another, where follow() is the
// way; those of all ranks' solvers.
std::unique_ptr<Solver> lead_ranks(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                   const SolverOptions& options);
// One rank's part (solver.cc).
std::unique_ptr<Solver> make_own_solver(IntrusivePtr<Device> device, const scene::SceneConfig& scene,
                                        const SolverOptions& options);

}  // namespace coppice::mpm
