// Leaves out the particles that would begin where there is something else already.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "apps/geometry/shapes.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// Returns the particles of `emitter` that begin in none of `earlier`, the shapes of the emitters before it
// (null for one that fills nothing at the start), and in no collider; they keep their order. Says in one line
// of the log how many are left out, and where. Cost: one test for each particle and each shape or collider
// whose bounds it is in. Errors: kInvalidArgument where none is left.
std::vector<Vec3f> without_overlaps(const scene::SceneConfig& scene, size_t emitter,
                                    std::vector<Vec3f> particles,
                                    std::span<const std::unique_ptr<Shape>> earlier);

}  // namespace coppice::mpm
