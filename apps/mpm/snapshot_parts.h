// Parts of the particles that a scene's files and pictures show.
#pragma once
#include <optional>

#include "apps/mpm/solver_output.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// Returns what a snapshot must have for what the scene writes; nothing where that shows no particles.
std::optional<SnapshotParts> parts_to_write(const scene::Output& output, bool has_pictures);
// The attributes of a scene's files; what `color` shows is in them, so that files can be shown again.
bool writes_pressure(const scene::Output& output);
bool writes_von_mises(const scene::Output& output);

}  // namespace coppice::mpm
