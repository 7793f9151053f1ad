// Turns a scene's emitters into particles. Seeded: the same scene gives the same particles on every machine.
#pragma once
#include <vector>

#include "apps/mpm/memory_need.h"
#include "apps/scene/scene.h"
#include "core/math.h"

namespace coppice::mpm {

struct EmittedParticles {
  std::vector<Vec3f> position;  // m, world
  std::vector<uint32_t> emitter;
  // [n_emitters] A particle's volume is this times its share of a cell, so that all of an emitter have its
  // shape's.
  std::vector<double> volume_factor = {};
};

// Leaves out particles that begin in an earlier emitter's shape or in a collider (overlaps.h), and those of
// an inflow that begins later. Errors (with the emitter's
// place in the scene): a mesh that cannot be read, no particles, particles outside the domain; and
// kOutOfMemory, before any is sampled, where they need more than the limits.
EmittedParticles emit_particles(const scene::SceneConfig& scene, const MemoryLimits& limits = {});

// The sub-cells of a grid cell along an axis, of which an emitter's particles take one each.
int subcells_per_axis(const scene::SceneConfig& scene, size_t emitter);

// The part of a ball in the domain, as dense as the emitter's own particles; its middle lies in the domain.
// The seed is that of the scene, `steps` and the ball. Errors: kUsage where about twice as many as `most`
// would come.
std::vector<Vec3f> sample_ball(const scene::SceneConfig& scene, size_t emitter, const Vec3f& center,
                               float radius_m, uint64_t steps, uint64_t most);

}  // namespace coppice::mpm
