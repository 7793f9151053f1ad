// Particles that come to a solver between two steps: from a hand, or with an inflow.
#pragma once
#include <vector>

#include "apps/mpm/solver_state.h"

namespace coppice::mpm {

// Returns the places whose sub-cell, as the emitter's particles have one each, has no particle.
template <int D>
std::vector<Vec3f> wait_without_taken(SolverState<D>& state, size_t emitter,
                                      const std::vector<Vec3f>& places);

// Adds particles of one emitter with one velocity (m/s). Those that are there are moved where there is no
// room.
template <int D>
void wait_arrive(SolverState<D>& state, size_t emitter, std::vector<Vec3f> places, const Vec3f& velocity);

}  // namespace coppice::mpm
