// `coppice run`: a scene simulated frame by frame, with everything it writes.
#pragma once
#include <atomic>
#include <string>

#include "apps/cli/commands.h"
#include "gpu/device.h"

namespace coppice {

// Simulates the scene and writes frames, particles, volumes and numbers. Polls `stop` after
// each frame; what is written by then is whole. With 0 frames it loads the scene and compiles
// every kernel, and writes nothing.
cli::RunOutcome run_scene(const cli::RunOptions& options, const std::atomic<bool>& stop);
// The device that the options ask for. Errors: those of Device::named(); kUsage for what does not go
// together.
IntrusivePtr<Device> make_device(const cli::RunOptions& options);
// Says what each launch of the scene's solver touches. Samples the emitters, and launches nothing.
std::string explain_launches(const cli::RunOptions& options);

}  // namespace coppice
