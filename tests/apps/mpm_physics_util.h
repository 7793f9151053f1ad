// The solver's physics tests share this: scenes from text, started solvers, and sums over particles.
//
// Every test prints the scene's seed, the bound it derives and what it measured, so that a failure tells how
// far off it is. Bounds are formulas: kRounding is the relative error of one float operation.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

inline constexpr double kRounding = 0x1p-24;
inline constexpr int kSeed = 20240;  // of every scene here, unless a test says otherwise

inline scene::SceneConfig parse_physics_scene(const std::string& text) {
  const scene::SceneConfig scene =
      scene::parse_scene(fmt::format("seed = {}\n{}", kSeed, text), "physics.toml");
  fmt::print("scene seed {}, dx {:.4g} m\n", scene.seed, scene.dx_m());
  return scene;
}

// threads = 0: all cores.
inline std::unique_ptr<Solver> wait_start(const scene::SceneConfig& scene, int threads = 0) {
  std::unique_ptr<Solver> solver = Solver::create(Device::cpu(threads), scene);
  solver->wait_ready();
  return solver;
}
inline std::unique_ptr<Solver> wait_start(const std::string& text) {
  return wait_start(parse_physics_scene(text));
}

// Two jelly boxes without weight, one on the other, that start in opposite directions: a square or cube that
// tumbles, about itself and, as it drifts past the origin, about that.
inline std::unique_ptr<Solver> wait_start_tumbling(int dim, double drift_m_s, const char* solver = "") {
  const bool solid = dim == 3;
  const auto box = [&](double y, double speed_m_s) {
    return fmt::format(
        "[[emitter]]\nshape = \"box\"\ncenter = [0, {}{}]\nhalf_size = [0.2, 0.1{}]\nvelocity = "
        "[{}, {}{}]\nmaterial = \"jelly\"\n",
        0.3 + y, solid ? ", 0.1" : "", solid ? ", 0.2" : "", speed_m_s + drift_m_s, 0.5 * drift_m_s,
        solid ? ", 0.05" : "");
  };
  return wait_start(fmt::format(
      "dim = {}\ngravity = {}\n{}[domain]\nmin = {}\nmax = {}\n[grid]\nresolution = {}\n[time]\nframe_dt_s = "
      "0.1\n{}{}",
      dim, solid ? "[0, 0, 0]" : "[0, 0]", solver, solid ? "[-1, -1, -1]" : "[-1, -1]",
      solid ? "[1, 1, 1]" : "[1, 1]", solid ? 24 : 64, box(0.1, -0.4), box(-0.1, 0.4)));
}

inline void wait_advance(Solver& solver, int frames) {
  for (int i = 0; i < frames; ++i) solver.wait_advance_frame();
}

// Returns what the scene's first collider took in two frames, on a CPU and on an emulated GPU.
inline std::array<ColliderForce, 2> wait_forces_on_cpu_and_simt(const std::string& text) {
  std::array<ColliderForce, 2> forces;
  for (size_t i = 0; i < 2; ++i) {
    const auto solver = Solver::create(Device::named(i == 0 ? "cpu" : "simt"), parse_physics_scene(text));
    solver->wait_ready();
    wait_advance(*solver, 2);
    forces[i] = solver->wait_stats().colliders[0];
  }
  return forces;
}

// Mean of f(i) over the particles of a snapshot that `keep` lets through; fails the test when there are none.
template <class Keep, class Value>
auto mean_of(const ParticleSnapshot& s, Keep keep, Value value) {
  decltype(value(size_t{0})) sum = value(0) - value(0);
  size_t n = 0;
  for (size_t i = 0; i < s.position.size(); ++i) {
    if (keep(i)) sum += value(i), ++n;
  }
  EXPECT_GT(n, 0u) << "no particle to take the mean of";
  sum /= static_cast<double>(n);
  return sum;
}

inline Vec3d mean_position(const ParticleSnapshot& s) {
  return mean_of(
      s, [](size_t) { return true; }, [&](size_t i) -> Vec3d { return s.position[i].cast<double>(); });
}
inline Vec3d mean_velocity(const ParticleSnapshot& s) {
  return mean_of(
      s, [](size_t) { return true; }, [&](size_t i) -> Vec3d { return s.velocity[i].cast<double>(); });
}

}  // namespace coppice::mpm
