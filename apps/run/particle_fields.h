// Values that files and pictures of particles may have beside those that are always there: of stress and
// strain (output.fields in a scene).
#pragma once
#include <vector>

#include "apps/mpm/solver_output.h"

namespace coppice {

// [n]; Pa. The snapshot has stress.
std::vector<float> pressures(const mpm::ParticleSnapshot& particles, int dim);
std::vector<float> von_mises_stresses(const mpm::ParticleSnapshot& particles, int dim);
// [n][D (D + 1) / 2].
std::vector<float> strains(const mpm::ParticleSnapshot& particles, int dim);

}  // namespace coppice
