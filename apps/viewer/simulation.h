// The viewer runs this: a simulation that advances in batches and packs what is to be seen.
//
// All functions are called on the simulation's own thread (simulation_thread.h), so that an implementation
// needs no locks. Whatever they throw pauses the simulation with the message; it never ends the program.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/scene/acts.h"
#include "apps/viewer/hands.h"
#include "apps/viewer/reports.h"
#include "apps/viewer/snapshot.h"
#include "core/error.h"

namespace coppice::viewer {

// A parameter that can be changed, for a widget. Values are TOML: "0.3", "[0.0, -9.81]", "\"speed\"".
struct Parameter {
  enum class Kind { kBool, kInteger, kNumber, kText, kChoice, kVector };
  std::string path;  // "gravity", "emitter[0].jelly.youngs_modulus_Pa"
  Kind kind = Kind::kNumber;
  std::string value;                 // now; empty where it is unset
  std::vector<double> numbers;       // of a number, an integer or a vector
  std::vector<std::string> choices;  // of a choice
  double min, max;                   // infinite where there is no bound
  std::string unit, doc;
  Acts acts = Acts::kRestart;
  bool is_changed = false;  // since the simulation was loaded
};

class Simulation {
 public:
  virtual ~Simulation() = default;

  // Advances by one batch: as many steps as are quick to make between two looks at the commands, at most
  // `most_steps`, at least one. Returns whether the batch ended a frame, if the simulation has frames;
  // else each batch ends one.
  virtual bool wait_advance(int most_steps) = 0;
  // Goes back to the beginning, with the parameters as they are now. If it throws, nothing has changed.
  virtual void wait_reset() = 0;
  // Fills everything but `wanted`, which says what else is asked for, and `pack_s`.
  virtual void wait_pack(Snapshot& snapshot) = 0;

  virtual uint64_t steps() const = 0;
  virtual double time_s() const = 0;
  // Returns the highest speed of whatever moves, after the last batch; 0 where nobody knows.
  virtual double max_speed_m_s() const { return 0; }

  // Returns the name of the device that it computes on ("cpu", "cuda"); empty: on none that has a name.
  virtual std::string device_name() const { return {}; }

  // Returns the memory of trees and of other large things, without histories. Empty: none is known.
  virtual MemoryState wait_memory() { return {}; }
  virtual bool has_memory() const { return false; }
  // Returns the functions that it runs, without times.
  virtual std::vector<FunctionGraph> graphs() const { return {}; }

  virtual std::vector<Parameter> parameters() const { return {}; }
  // Errors: kUsage for a path that is not there or a value that does not fit, with both; nothing has changed
  // then.
  virtual void wait_set(const std::string& path, const std::string& value) = 0;

  // A hand may do these to it between two batches. If one throws, nothing has changed: kUsage for a place
  // outside, a radius or velocity without sense, an unknown material, no room, with what was expected.
  virtual Hands hands() const { return {}; }
  virtual void wait_act(const Emit&) { throw Error(ErrorCode::kUsage, "this simulation emits nothing"); }
  virtual void wait_act(const Push&) { throw Error(ErrorCode::kUsage, "this simulation cannot be pushed"); }
  virtual void wait_act(const Cut&) { throw Error(ErrorCode::kUsage, "this simulation cannot be cut"); }
};

}  // namespace coppice::viewer
