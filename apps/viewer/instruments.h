// Measures what somebody looks at: on the simulation's thread, between two batches, at most every
// kReportPeriod_s.
//
// While nobody looks, a batch costs a comparison. Watched times are those of a live trace, so that there are
// none while a trace is recorded for a file.
#pragma once
#include <chrono>
#include <memory>
#include <vector>

#include "apps/viewer/command.h"
#include "apps/viewer/reports.h"
#include "apps/viewer/simulation.h"
#include "apps/viewer/step_profile.h"

namespace coppice::viewer {

class Instruments {
 public:
  Instruments() = default;
  ~Instruments();  // ends the trace
  Instruments(const Instruments&) = delete;
  Instruments& operator=(const Instruments&) = delete;

  // `simulation` is null where there is none yet. Errors, also of add_batch(): those of
  // Simulation::graphs() and device_name().
  void watch(const Watch& watch, Simulation* simulation);
  // The simulation begins anew: measurements are forgotten, and if it is paused, what is watched is
  // measured at once.
  void begin_anew(Simulation& simulation);
  // Is called behind each batch. Returns whether there are new reports.
  bool add_batch(Simulation& simulation, const ProfiledTime& batch);
  // Returns the last reports; their parts are null where nobody looked.
  const Reports& reports() const { return reports_; }

 private:
  using Clock = std::chrono::steady_clock;
  void watch_time(bool is_watched);
  void measure_graphs(const Simulation& simulation);
  void end_trace();
  bool add_time(const Simulation& simulation, const ProfiledTime& batch, Clock::time_point now);
  // An exception of the simulation is a warning, the first time: nothing is wrong with the state that is
  // computed.
  bool ask_for_memory(Simulation& simulation, Clock::time_point now);

  Watch watched_;
  bool has_trace_ = false, has_warned_ = false;
  std::string why_no_trace_;
  StepProfile profile_;
  ProfiledTime since_report_;
  std::vector<FunctionGraph> graphs_;  // without times; empty until they are watched
  Clock::time_point reported_{}, memory_due_{};
  Reports reports_;
};

}  // namespace coppice::viewer
