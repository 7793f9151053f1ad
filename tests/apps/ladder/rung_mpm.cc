// The last rung: the MPM solver on a small scene, against the CPU (see ladder.h).
#include <fmt/format.h>

#include <algorithm>

#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"
#include "tests/apps/ladder/ladder.h"

namespace coppice::ladder {

namespace {

scene::SceneConfig mpm_scene(Bench& bench) {
  return scene::parse_scene(
      fmt::format(
          "seed = 7\ndim = 2\n[domain]\nmax = [1, 1]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = 0.004\n"
          "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5]\nradius = 0.15\nvelocity = [0, -4]\n"
          "material = \"snow\"\n"
          "[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.15]\nhalf_size = [0.3, 0.15]\nmaterial = "
          "\"water\"\n",
          bench.scaled(96, 12)),
      "ladder.toml");
}

}  // namespace

std::string run_mpm(Bench& bench) {
  const scene::SceneConfig scene = mpm_scene(bench);
  const auto here = mpm::Solver::create(bench.device(), scene),
             on_cpu = mpm::Solver::create(Device::cpu(1), scene);
  const int frames = bench.scaled(4, 1);
  for (int frame = 0; frame < frames; ++frame) here->wait_advance_frame(), on_cpu->wait_advance_frame();
  const mpm::ParticleSnapshot got = here->wait_snapshot(), expected = on_cpu->wait_snapshot();
  expect(got.position.size() == expected.position.size(),
         fmt::format("{} particles, not {}", got.position.size(), expected.position.size()));
  const double speed = std::max(1.0, on_cpu->wait_stats().max_speed_m_s);
  double furthest_m = 0, fastest_m_s = 0;
  for (size_t i = 0; i < got.position.size(); ++i) {
    furthest_m = std::max<double>(furthest_m, (got.position[i] - expected.position[i]).norm());
    fastest_m_s = std::max<double>(fastest_m_s, (got.velocity[i] - expected.velocity[i]).norm());
  }
  // Sums have the same order on both; LLVM makes other code of them. As
  // tests/apps/mpm_solver_physics_test.cc.
  expect(furthest_m <= 1e-5 && fastest_m_s <= 1e-3 * speed,
         fmt::format("particles are up to {:.2g} m and {:.2g} m/s away from the CPU's", furthest_m,
                     fastest_m_s));
  return fmt::format("{} particles, {} steps, at most {:.1g} m from the CPU's", got.position.size(),
                     here->wait_stats().steps, furthest_m);
}

void compile_mpm(Bench& bench) { mpm::Solver::create(bench.device(), mpm_scene(bench))->wait_ready(); }

}  // namespace coppice::ladder
