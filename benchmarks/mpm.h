// The two parts of the MPM benchmark share this.
#pragma once
#include "apps/mpm/solver.h"
#include "benchmarks/report.h"

namespace coppice::bench {

// Bytes of state that one step of one particle must read and write.
double particle_step_bytes(int dim, scene::MaterialKind kind);
// The mean over a solver's particles.
double particle_step_bytes(const scene::SceneConfig& scene, mpm::Solver& solver);

// Particle-steps per second that the machine allows, the lesser of two: a particle's bytes at the speed of a
// copy of all of them by as many threads (a small scene fits the caches, and the copy with it), and the
// operations of the two transfers between particles and grid at the peak of that many threads.
double mpm_floor(int dim, double step_bytes, uint64_t particles, int threads);

void run_mpm_beside_taichi(Report& report);
// The same workload on a device that moves bytes so fast.
void run_mpm_beside_taichi(Report& report, const IntrusivePtr<Device>& device, double copied_bytes_per_s);
// File-free scenes of a million and of seven million particles on a device that moves bytes so fast.
void run_mpm_on_device(Report& report, const IntrusivePtr<Device>& device, double copied_bytes_per_s);
void run_mpm_scenes(Report& report);

}  // namespace coppice::bench
