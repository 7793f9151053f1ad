// A viewer asks these things of the simulation's thread.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "apps/viewer/hands.h"
#include "apps/viewer/snapshot.h"

namespace coppice::viewer {

struct Pause {
  bool is_paused = true;
};
// Makes that many steps, and pauses.
struct StepOnce {
  int steps = 1;
};
struct Reset {};
// A parameter's new value, as TOML.
struct SetParameter {
  std::string path, value;
};
// The simulation makes at most so many simulated seconds per second; 0: as fast as it goes.
struct SetPace {
  double pace = 0;
};
// Pauses behind the batch that reaches one of them; that one is forgotten then, the others stay.
struct SetBreakpoints {
  std::optional<double> time_s;
  std::optional<uint64_t> step;
  std::optional<double> max_speed_m_s;
  bool not_finite = false;  // of any value that is shown

  bool operator==(const SetBreakpoints&) const = default;
};
// Tells what somebody looks at, so that it is measured (instruments.h); nothing else is.
struct Watch {
  bool time = false, memory = false, graphs = false;

  bool operator==(const Watch&) const = default;
};
// Tells what snapshots are to have from now on.
struct Want {
  Wanted wanted;
};
// Compiles all kernel files that are watched (sparse/kernel_reload.h), changed or not.
struct ReloadKernels {};
// Says that a changed kernel file was taken over. It stands in journals only, for nobody can do it again.
struct KernelsLoaded {
  std::string file, hash;  // its name; of its bitcode
};
using Command = std::variant<Pause, StepOnce, Reset, SetParameter, SetPace, SetBreakpoints, Want, Watch, Emit,
                             Push, Cut, ReloadKernels, KernelsLoaded>;

// Returns whether the command changes what is computed, so that a replay needs it.
inline bool changes_simulation(const Command& c) {
  return std::holds_alternative<StepOnce>(c) || std::holds_alternative<Reset>(c) ||
         std::holds_alternative<SetParameter>(c) || std::holds_alternative<Emit>(c) ||
         std::holds_alternative<Push>(c) || std::holds_alternative<Cut>(c) ||
         std::holds_alternative<KernelsLoaded>(c);
}

}  // namespace coppice::viewer
