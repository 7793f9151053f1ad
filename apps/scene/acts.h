// When the change of a parameter acts on a simulation that is running.
#pragma once

namespace coppice {

enum class Acts {
  kNow,     // from the next step on, or on what is shown
  kRestart  // when the simulation begins anew
};

}  // namespace coppice
