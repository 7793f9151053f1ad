// What the two parts of the MPM benchmark share.
#pragma once
#include "apps/mpm/solver.h"
#include "benchmarks/report.h"

namespace coppice::bench {

// Bytes of state that one step of one particle must read and write, the mean over a solver's particles.
double particle_step_bytes(const scene::SceneConfig& scene, mpm::Solver& solver);

// Particle-steps per second that the memory allows: a particle's bytes at the speed of a copy of all of them by as many
// threads. A small scene fits the caches, and the copy with it.
double mpm_floor(double step_bytes, uint64_t particles, int threads);

void run_mpm_beside_taichi(Report& report);
void run_mpm_scenes(Report& report);

}  // namespace coppice::bench
