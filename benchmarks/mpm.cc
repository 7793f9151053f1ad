// The MPM benchmark's two parts, and the floor of both (see mpm.h).
#include "benchmarks/mpm.h"

#include <algorithm>

#include "apps/mpm/solver_types.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/measure.h"

namespace coppice::bench {
namespace {

// The grid update is a barrier between two passes over the particles: the first reads position,
// velocity, affine matrix and stress; the second reads position and the material's state, and
// writes all but mass and group.
template <int D>
double step_bytes(scene::MaterialKind kind) {
  using A = mpm::Attribute<D>;
  constexpr int position = D, velocity = D, affine = A::kDeformation - A::kAffine,
                stress = A::kGroup - A::kStress;
  const bool is_water = kind == scene::MaterialKind::kWater, is_jelly = kind == scene::MaterialKind::kJelly;
  const int state = (is_water ? 0 : A::kScalar - A::kDeformation) + (is_jelly ? 0 : A::kStress - A::kScalar);
  const int scatter_reads = position + velocity + affine + stress;
  const int gather_reads = position + state;
  const int gather_writes = position + velocity + affine + state + stress;
  return static_cast<double>(sizeof(float)) * (scatter_reads + gather_reads + gather_writes);
}

// Returns the floating-point operations of one particle-step. Each node of the 3^D around a particle
// takes its weight; to the grid D components of the momentum, which is linear in the node's place, and
// the mass; from the grid D components of the velocity and D * D of the affine matrix. The material's own
// work (a singular value decomposition, say) comes on top.
double transfer_operations(int dim) {
  const double nodes = dim == 3 ? 27 : 9, weight = 1, multiply_add = 2;
  const double to_grid = dim + multiply_add * (dim + 1), from_grid = multiply_add * (dim + dim * dim);
  return nodes * (weight + to_grid + from_grid);
}

}  // namespace

double particle_step_bytes(int dim, scene::MaterialKind kind) {
  return dim == 3 ? step_bytes<3>(kind) : step_bytes<2>(kind);
}

double particle_step_bytes(const scene::SceneConfig& scene, mpm::Solver& solver) {
  std::vector<double> of_material;
  for (const scene::MaterialParameters& m : scene.materials) {
    of_material.push_back(particle_step_bytes(scene.dim, scene::kind_of_material(m)));
  }
  const mpm::ParticleSnapshot particles = solver.wait_snapshot();
  double sum = 0;
  for (const uint8_t material : particles.material) sum += of_material[material];
  return sum / static_cast<double>(particles.material.size());
}

double mpm_floor(int dim, double step_bytes, uint64_t particles, int threads) {
  // As much as the step moves, a half of it read; in whole MiB, so that scenes of
  // about one size share a measurement.
  const auto bytes = static_cast<size_t>(step_bytes * static_cast<double>(particles) / 2);
  const double by_memory = copy_bytes_per_s(threads, (bytes >> 20 << 20) + (1 << 20)) / step_bytes;
  return std::min(by_memory, peak_flops(threads) / transfer_operations(dim));
}

void run_mpm(Report& report) {
  run_mpm_beside_taichi(report);
  run_mpm_scenes(report);
}

}  // namespace coppice::bench
