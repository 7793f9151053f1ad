// The bound of a step holds within a batch of steps, too.
#include <algorithm>

#include "apps/mpm/step_length.h"
#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

struct Waves {
  double most_cells = 0;   // that a wave crosses, after a step, in the time of that step
  double most_growth = 1;  // of the speed of waves from one look to the next
  double fastest = 0, slowest = 1e9;
};
// Snow that falls onto the floor hardens from step to step.
Waves waves_of_falling_snow(double cfl, int steps_per_batch) {
  const scene::SceneConfig scene = parse_physics_scene(fmt::format(
      "dim = 2\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.01\ncfl = {}\n"
      "max_dt_s = 1\n[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.15]\nhalf_size = [0.1, 0.1]\n"
      "velocity = [0, -4]\nmaterial = \"snow\"\n",
      cfl));
  const auto solver = wait_start(scene, 1);
  Waves waves;
  double before = 0;
  while (solver->frame() < 10) {
    solver->wait_advance(steps_per_batch);
    const FrameStats stats = solver->wait_stats();
    const double c = stats.max_wave_m_s;
    waves.most_cells = std::max(waves.most_cells, c * stats.dt_s / scene.dx_m());
    if (before > 0) waves.most_growth = std::max(waves.most_growth, c / before);
    waves.slowest = std::min(waves.slowest, c), waves.fastest = std::max(waves.fastest, c);
    before = c;
  }
  return waves;
}

// Only the last step of a batch may make waves faster than its length allows, by what a single step can.
// Seen to fail: c dt / dx came to 1.7 with a CFL number of 0.4.
TEST(StepBound, HoldsWhileSnowHardens) {
  for (const double cfl : {0.4, 1.0}) {
    const Waves single = waves_of_falling_snow(cfl, 1), batches = waves_of_falling_snow(cfl, kStepsPerBatch);
    fmt::print(
        "CFL number {}: c of {:.3g} to {:.3g} m/s, c dt / dx at most {:.3f}; in single steps {:.3f}, where c "
        "grows by {:.3f} at most\n",
        cfl, batches.slowest, batches.fastest, batches.most_cells, single.most_cells, single.most_growth);
    EXPECT_GT(batches.fastest, 2 * batches.slowest);
    EXPECT_LE(batches.most_cells, 1.05 * cfl * single.most_growth);
  }
}

}  // namespace
}  // namespace coppice::mpm
