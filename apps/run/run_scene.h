// `coppice run`: a scene simulated frame by frame, with everything it writes.
#pragma once
#include <atomic>

#include "apps/cli/commands.h"
#include "gpu/device.h"

namespace coppice {

// Simulates the scene and writes frames, particles, volumes and numbers. Polls `stop` after
// each frame; what is written by then is whole. With 0 frames it loads the scene and compiles
// every kernel, and writes nothing.
cli::RunOutcome run_scene(const cli::RunOptions& options, const std::atomic<bool>& stop);
// The device that the options ask for. Errors: those of Device::named(); kUsage for what does not go
// together.
// `share`: threads of the cpu device where the options say nothing; 0: all cores.
IntrusivePtr<Device> make_device(const cli::RunOptions& options, int share = 0);
// Describes what the scene's solver runs on the device. Samples the emitters, and launches nothing.
cli::FunctionsText describe_functions(const cli::RunOptions& options);

}  // namespace coppice
