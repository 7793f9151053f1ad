// `coppice validate`: what a scene would be, without a device.
#pragma once

#include <vector>

#include "apps/cli/commands.h"

namespace coppice {

// Reads meshes, samples the emitters and chooses the first step, as a run does at its start. Errors:
// those of a run then.
std::vector<cli::InfoLine> validate_scene(const cli::ValidateOptions& options);

}  // namespace coppice
