// A hand acts on a solver between two steps: these are Solver::wait_emit(), wait_push() and wait_cut(), which
// solver.h describes.
#pragma once
#include "apps/geometry/stroke.h"
#include "apps/mpm/solver_state.h"

namespace coppice::mpm {

// `steps` is how many there were: another ball has other places in a later step.
template <int D>
uint64_t wait_emit(SolverState<D>& state, size_t emitter, const Vec3f& center, float radius_m,
                   const Vec3f& velocity, uint64_t steps);
template <int D>
void wait_push(SolverState<D>& state, const Stroke& stroke, const Vec3f& velocity);
template <int D>
uint64_t wait_cut(SolverState<D>& state, const Stroke& stroke);

}  // namespace coppice::mpm
