// Turns a scene's emitters into particles. Seeded: the same scene gives the same particles on every machine.
#pragma once
#include <vector>

#include "apps/scene/scene.h"
#include "core/math.h"

namespace coppice::mpm {

struct EmittedParticles {
  std::vector<Vec3f> position;  // m, world
  std::vector<uint8_t> emitter;
};

// Errors (with the emitter's place in the scene): a mesh that cannot be read, no particles, particles outside the domain.
EmittedParticles emit_particles(const scene::SceneConfig& scene);

}  // namespace coppice::mpm
