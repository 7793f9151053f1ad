// Computes them on the host (see particle_fields.h).
#include "apps/run/particle_fields.h"

#include <algorithm>
#include <cstring>

#include "apps/mpm/stress_values.h"

namespace coppice {
namespace {

// Calls value(stress) for each particle, with a SymmetricMat<D>.
template <int D, class Value>
std::vector<float> of_stresses(const mpm::ParticleSnapshot& particles, Value&& value) {
  constexpr size_t n = mpm::kSymmetric<D>;
  std::vector<float> values(particles.stress.size() / n);
  for (size_t i = 0; i < values.size(); ++i) {
    mpm::SymmetricMat<D> stress;
    std::memcpy(stress.m, particles.stress.data() + i * n, sizeof stress.m);
    values[i] = value(stress);
  }
  return values;
}

template <int D>
std::vector<float> strains_of(const mpm::ParticleSnapshot& particles) {
  constexpr size_t n = mpm::kSymmetric<D>;
  std::vector<float> values(particles.position.size() * n);
  for (size_t i = 0; i < particles.position.size(); ++i) {
    mpm::SmallMat<float, D> f;
    std::memcpy(f.m, particles.deformation.data() + i * D * D, sizeof f.m);
    const mpm::SymmetricMat<D> strain = mpm::green_lagrange<D>(f);
    std::copy_n(strain.m, n, values.data() + i * n);
  }
  return values;
}

}  // namespace

std::vector<float> pressures(const mpm::ParticleSnapshot& particles, int dim) {
  if (dim == 2) return of_stresses<2>(particles, mpm::pressure_of<2>);
  return of_stresses<3>(particles, mpm::pressure_of<3>);
}

std::vector<float> von_mises_stresses(const mpm::ParticleSnapshot& particles, int dim) {
  if (dim == 2) return of_stresses<2>(particles, mpm::von_mises_of<2>);
  return of_stresses<3>(particles, mpm::von_mises_of<3>);
}

std::vector<float> strains(const mpm::ParticleSnapshot& particles, int dim) {
  return dim == 2 ? strains_of<2>(particles) : strains_of<3>(particles);
}

}  // namespace coppice
