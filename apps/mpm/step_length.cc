// The bounds of a step (see step_length.h).
#include "apps/mpm/step_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "apps/scene/collider_motion.h"
#include "core/error.h"

namespace coppice::mpm {
namespace {

constexpr double kMostSteps = 1e7;  // per frame; more would take weeks

constexpr double kUsualFrame_s = 1.0 / 24;

// Returns the emitter and kind of the material with the fastest waves: "the jelly of emitter[1]".
std::string stiffest_material(const scene::SceneConfig& scene) {
  const auto sound = [&](const scene::Emitter& e) {
    return scene::sound_speed_m_s(scene.materials[static_cast<size_t>(e.material_id)]);
  };
  const auto stiffest = std::ranges::max_element(scene.emitters, {}, sound);
  return fmt::format("the {} of emitter[{}]",
                     scene::enum_names(stiffest->material)[static_cast<size_t>(stiffest->material)],
                     stiffest - scene.emitters.begin());
}

// Returns the collider with the fastest point, and its speed from now on; 0 where there is none.
std::pair<size_t, double> fastest_collider(const scene::SceneConfig& scene, double time_s) {
  std::pair<size_t, double> fastest{0, 0};
  for (size_t i = 0; i < scene.colliders.size(); ++i) {
    const double speed = scene::fastest_point_m_s(scene, scene.colliders[i], time_s);
    if (speed > fastest.second) fastest = {i, speed};
  }
  return fastest;
}

// Returns the emitter of the water with the largest kinematic viscosity, and that in m^2/s.
std::pair<size_t, double> most_viscous(const scene::SceneConfig& scene) {
  std::pair<size_t, double> most{0, 0};
  for (size_t i = 0; i < scene.emitters.size(); ++i) {
    const scene::Emitter& e = scene.emitters[i];
    if (e.material != scene::MaterialKind::kWater) continue;
    const double viscosity = e.water.viscosity_Pa_s / e.water.density_kg_m3;
    if (viscosity > most.second) most = {i, viscosity};
  }
  return most;
}

// Explicit diffusion is stable up to dx^2 / (2 D nu).
double viscous_step_s(const scene::SceneConfig& scene) {
  return scene.dx_m() * scene.dx_m() / (2 * scene.dim * std::max(most_viscous(scene).second, 1e-300));
}

// Names the one cause without which there would not be too many steps, and how it is mended. A step that is
// short because of what was asked becomes longer by other means than one that is short because the motion has
// blown up, which the steps before were too long for.
std::string why_too_many_steps(const StepSituation& now, const scene::SceneConfig& scene, double steps,
                               double dt_s, StepBound bound) {
  const bool is_max_dt = bound == StepBound::kLongest;
  const scene::Time& time = scene.time;
  const double usual_cfl = scene::Time().cfl;
  // Later on, motion has blown up rather, unless a number is absurd.
  const bool is_small_cfl = time.cfl < (now.is_start ? usual_cfl : 0.01 * usual_cfl);
  const auto asked_for = [&](const char* key, double value, const std::string& unit) {
    return fmt::format(
        "steps of {:.3g} s, as {} = {:.3g}{} asks for, are more than {:.0e} in a frame; raise {}", dt_s, key,
        value, unit, kMostSteps, key);
  };
  if (is_max_dt && steps * std::min(1.0, time.max_dt_s / scene::Time().max_dt_s) < kMostSteps)
    return asked_for("time.max_dt_s", time.max_dt_s, " s");
  if (!is_max_dt && is_small_cfl && steps * time.cfl / usual_cfl < kMostSteps)
    return asked_for("time.cfl", time.cfl, "") + fmt::format(" (usually {:.3g})", usual_cfl);
  const double usual_frame_steps = steps * kUsualFrame_s / time.frame_dt_s;
  if (time.frame_dt_s > kUsualFrame_s && usual_frame_steps < (now.is_start ? 1 : 0.01) * kMostSteps) {
    return fmt::format(
        "steps of {:.3g} s are more than {:.0e} in a frame of {:.3g} s; have shorter frames "
        "(time.frame_dt_s, or raise time.fps)",
        dt_s, kMostSteps, time.frame_dt_s);
  }
  if (is_max_dt) return asked_for("time.max_dt_s", time.max_dt_s, " s") + ", and have shorter frames";
  const auto [collider, collider_speed] = fastest_collider(scene, now.time_s);
  const std::string needs =
      fmt::format("which needs steps of {:.3g} s, more than {:.0e} in a frame", dt_s, kMostSteps);
  if (bound == StepBound::kViscosity) {
    return fmt::format(
        "the water of emitter[{}] has a viscosity of {:.3g} m^2/s, {}; lower it, or take a coarser grid",
        most_viscous(scene).first, most_viscous(scene).second, needs);
  }
  if (collider_speed >= std::max(now.speed_m_s, now.sound_m_s)) {
    return fmt::format("collider[{}] moves with {:.3g} m/s, {}; slow it down, or take a coarser grid",
                       collider, collider_speed, needs);
  }
  if (!now.is_start) {
    return fmt::format(
        "particles move with {:.3g} m/s and waves with {:.3g} m/s, {}; lower time.cfl (now "
        "{:.3g}) or time.max_dt_s, or soften the material",
        now.speed_m_s, now.sound_m_s, needs, time.cfl);
  }
  if (bound == StepBound::kSound) {
    return fmt::format("waves move with {:.3g} m/s through {}, {}; soften it, or take a coarser grid",
                       now.sound_m_s, stiffest_material(scene), needs);
  }
  return fmt::format(
      "particles move with {:.3g} m/s and gravity is {:.3g} m/s^2, {}; lower them, or take a "
      "coarser grid",
      now.speed_m_s, scene.gravity.norm(), needs);
}

}  // namespace

std::string_view to_text(StepBound bound) {
  constexpr std::array<std::string_view, 4> kTexts = {"the CFL bound", "the sound speed bound",
                                                      "the viscosity's bound", "time.max_dt_s"};
  return kTexts[static_cast<size_t>(bound)];
}

StepLength choose_step_length(const scene::SceneConfig& scene, const StepSituation& now) {
  const scene::Time& time = scene.time;
  const double reach = time.cfl * scene.dx_m();
  // The material's own speed may grow within a batch; gravity's part of it is known.
  const double falling = now.speed_m_s + scene.gravity.norm() * kStepsPerBatch *
                                             std::min(time.max_dt_s, reach / std::max(now.sound_m_s, 1e-6));
  const double dt_speed = reach / std::max({falling, fastest_collider(scene, now.time_s).second, 1e-9}),
               dt_sound = reach / std::max(now.sound_m_s, 1e-9);
  const std::array<double, 4> bounds = {dt_speed, dt_sound, 0.5 * viscous_step_s(scene), time.max_dt_s};
  const auto shortest = std::ranges::min_element(bounds);
  const double most = *shortest;
  const auto bound = static_cast<StepBound>(shortest - bounds.begin());
  // The steps before were rounded to float: without the tolerance, that would cost a step at the end of most
  // frames.
  const double steps = std::ceil(now.remaining_s / most * (1 - 1e-6));
  const double dt = now.remaining_s / std::max(steps, 1.0);
  if (!(steps < kMostSteps)) {
    throw Error(ErrorCode::kNumeric, fmt::format("frame {}: at t = {:.6g} s {}", now.frame + 1, now.time_s,
                                                 why_too_many_steps(now, scene, steps, dt, bound)));
  }
  return {.dt_s = dt, .max_speed_m_s = reach / dt * 1.0001, .bound = bound};
}

}  // namespace coppice::mpm
