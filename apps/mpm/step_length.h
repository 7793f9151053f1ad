// The length of a time step, and the error where it is too short to ever come to the frame's end.
#pragma once
#include <cstdint>
#include <string_view>

#include "apps/scene/scene.h"

namespace coppice::mpm {

// Steps that are queued between two looks at the step control; as many as @mpm.batch runs ahead.
inline constexpr int kStepsPerBatch = 32;

// One of these bounds a step's length.
enum class StepBound {
  kSpeed,      // particles and colliders cross at most `time.cfl` cells in a step
  kSound,      // waves do
  kViscosity,  // explicit diffusion is stable
  kLongest,    // `time.max_dt_s`
};
std::string_view to_text(StepBound bound);  // "the CFL bound"

// A step's length follows from this and the scene.
struct StepSituation {
  int frame;                    // counted from 0
  double time_s, remaining_s;   // now, and up to the frame's end
  double speed_m_s, sound_m_s;  // of the fastest particle and wave
  bool is_start;                // nothing has moved yet: the speeds are what the scene asks for
};

struct StepLength {
  double dt_s;
  double max_speed_m_s;  // a faster particle crosses more than `time.cfl` cells in a step
  StepBound bound;
};

// Returns the largest step that no particle, sound wave or collider crosses more than `time.cfl` cells in,
// and in which viscosity is stable, the frame's rest being divided into equal steps. Errors: kNumeric for too
// many of them.
StepLength choose_step_length(const scene::SceneConfig& scene, const StepSituation& now);

}  // namespace coppice::mpm
