// The shape of a scene's emitter, in the world.
#pragma once
#include <memory>
#include <optional>

#include "apps/geometry/shapes.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// Errors (with the emitter's place in the scene): a mesh that cannot be read, and a shape without a size
// in 32 bits.
std::unique_ptr<Shape> make_emitter_shape(const scene::Emitter& emitter, int dim);

// Returns the volume of the emitter's shape, m^3 (m^2 in 2-D): by its formula, or what a closed mesh
// encloses; none for an open mesh. Where a mesh passes through itself, space counts as often as it is
// enclosed.
std::optional<double> enclosed_volume(const scene::Emitter& emitter, const Shape& shape, int dim);

}  // namespace coppice::mpm
