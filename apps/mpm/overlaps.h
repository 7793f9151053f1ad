// Counts the particles that begin where there is something else already.
#pragma once

#include <memory>
#include <span>

#include "apps/geometry/shapes.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// Logs a warning for each earlier emitter whose shape has particles of `emitter` in it, which weigh on
// the grid together, and for each collider that does, which throws them out in the first step. `earlier`
// are the shapes of the emitters before. Cost: one test for each particle and each shape or collider
// whose bounds it is in.
void warn_of_overlaps(const scene::SceneConfig& scene, size_t emitter, std::span<const Vec3f> particles,
                      std::span<const std::unique_ptr<Shape>> earlier);

}  // namespace coppice::mpm
