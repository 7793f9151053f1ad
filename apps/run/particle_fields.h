// Values that files and pictures of particles may have beside those that are always there: of stress and
// strain (output.fields in a scene).
#pragma once
#include <vector>

#include "apps/mpm/solver_output.h"
#include "apps/scene/scene.h"

namespace coppice {

// Returns whether a snapshot needs the particles' stress for what the scene writes.
bool needs_stress(const scene::Output& output);
// The attributes of a scene's files; what `color` shows is in them, so that files can be shown again.
bool writes_pressure(const scene::Output& output);
bool writes_von_mises(const scene::Output& output);

// [n]; Pa. The snapshot has stress.
std::vector<float> pressures(const mpm::ParticleSnapshot& particles, int dim);
std::vector<float> von_mises_stresses(const mpm::ParticleSnapshot& particles, int dim);
// [n][D (D + 1) / 2].
std::vector<float> strains(const mpm::ParticleSnapshot& particles, int dim);

}  // namespace coppice
