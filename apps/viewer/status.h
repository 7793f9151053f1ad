// This status says how a simulation that the viewer runs is doing.
#pragma once
#include <cstdint>
#include <string>

#include "apps/viewer/command.h"
#include "core/error.h"
#include "sparse/kernel_reload.h"

namespace coppice::viewer {

enum class RunState {
  kStarting,  // being made: particles sampled, kernels compiled
  kRunning,
  kPaused,
  kFailed,  // it threw; what is left is to look, and to begin anew
  kEnded    // after the last frame that was asked for
};

struct SimulationStatus {
  RunState state = RunState::kStarting;
  std::string message;                     // why it failed or paused; empty when a person paused it
  ErrorCode error = ErrorCode::kInternal;  // of kFailed
  uint64_t replay_refused = 0;             // commands of the journal that is replayed that did nothing
  std::string replay_refusal;              // why the first of them did
  std::string notice;                      // the last command that was refused, and why; until one is obeyed
  uint64_t obeyed = 0;                     // commands that were posted and looked at, refused ones too
  uint64_t reset = 0;                      // `obeyed` behind the last reset that was not refused
  uint64_t steps = 0, frames = 0;          // since it began
  double time_s = 0;
  double pace = 0;                              // simulated seconds per second, at most; 0: no limit
  double steps_per_s = 0;                       // of the last half second that it ran
  double pack_share = 0;                        // of the time that it ran, for packing
  bool has_memory = false, has_graphs = false;  // the simulation has some to show
  SetBreakpoints breakpoints;                   // that were not reached yet
  KernelReloadStatus kernels;                   // of changed kernel files
  Hands hands;                                  // that the simulation offers
};

}  // namespace coppice::viewer
