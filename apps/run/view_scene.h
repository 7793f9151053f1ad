// `coppice view`: a scene simulated beside somebody who looks.
#pragma once
#include <atomic>

#include "apps/cli/commands.h"

namespace coppice {

// Shows the scene in a window, writes each frame's picture, or shows nothing, until it is closed or ends. A
// window goes on behind the scene's last frame unless `has_frames`. Errors: kUnavailable when there can be no
// window, with the reason; what the simulation failed with.
cli::RunOutcome view_scene(const cli::ViewOptions& options, const std::atomic<bool>& stop);

}  // namespace coppice
