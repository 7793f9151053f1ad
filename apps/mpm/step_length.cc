// The bounds of a step (see step_length.h).
#include "apps/mpm/step_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace coppice::mpm {
namespace {

constexpr double kMostSteps = 1e7;  // per frame; more would take weeks

// A step that is short because of what was asked becomes longer by other means than one that is short because
// the motion has blown up, which the steps before were too long for.
std::string why_too_many_steps(const StepSituation& now, const scene::Time& time, double dt_s, bool is_max_dt,
                               bool is_sound) {
  if (is_max_dt) {
    return fmt::format(
        "steps of {:.3g} s, as time.max_dt_s asks for, are more than {:.0e} in a frame; raise "
        "time.max_dt_s, or have shorter frames (time.fps)",
        dt_s, kMostSteps);
  }
  const std::string what = fmt::format(
      "particles move with {:.3g} m/s and waves with {:.3g} m/s, which needs steps of {:.3g} s, more than "
      "{:.0e} in a frame",
      now.speed_m_s, now.sound_m_s, dt_s, kMostSteps);
  if (!now.is_start) {
    return fmt::format("{}; lower time.cfl (now {:.3g}) or time.max_dt_s, or soften the material", what,
                       time.cfl);
  }
  return fmt::format("{}; {}, take a coarser grid, or raise time.cfl (now {:.3g})", what,
                     is_sound ? "soften the material" : "lower velocities or gravity", time.cfl);
}

}  // namespace

StepLength choose_step_length(const scene::SceneConfig& scene, const StepSituation& now) {
  const scene::Time& time = scene.time;
  const double reach = time.cfl * scene.dx_m();
  // The material's own speed may grow within a batch; gravity's part of it is known.
  const double falling = now.speed_m_s + scene.gravity.norm() * kStepsPerBatch *
                                             std::min(time.max_dt_s, reach / std::max(now.sound_m_s, 1e-6));
  const double dt_speed = reach / std::max(falling, 1e-9), dt_sound = reach / std::max(now.sound_m_s, 1e-9);
  const double most = std::min({dt_speed, dt_sound, time.max_dt_s});
  const bool is_sound = dt_sound <= dt_speed;
  // The steps before were rounded to float: without the tolerance, that would cost a step at the end of most
  // frames.
  const double steps = std::ceil(now.remaining_s / most * (1 - 1e-6));
  const double dt = now.remaining_s / std::max(steps, 1.0);
  if (!(steps < kMostSteps)) {
    throw Error(ErrorCode::kNumeric,
                fmt::format("frame {}: at t = {:.6g} s {}", now.frame + 1, now.time_s,
                            why_too_many_steps(now, time, dt, most == time.max_dt_s, is_sound)));
  }
  return {.dt_s = dt, .max_speed_m_s = reach / dt * 1.0001, .is_from_sound = is_sound};
}

}  // namespace coppice::mpm
