// Elastic jelly: the period of a bar, and how far a block sags under its own weight.
//
// With Poisson's ratio 0 the neo-Hookean energy is E / 4 (s^2 - 1 - 2 ln s) along each axis and couples none.
// A bar that swings by a hundredth has the period of the linear one within a thousandth.
//
// Seen to fail when the code was broken: MLS-MPM's 4 / dx^2 taken as 3 / dx^2 in the scatter (period 16 % too
// long, as sqrt(4 / 3) has it), a tile's overlap left out of the grid's sum, stress with the wrong sign.
#include <array>
#include <cmath>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kDensity = 1000;

constexpr double kBarYoung_Pa = 1e5, kBarLength_m = 1.0;

// Period of the first longitudinal mode of a bar that is held at one end: a wave runs along it four times.
double bar_period_s() { return 4 * kBarLength_m / std::sqrt(kBarYoung_Pa / kDensity); }

// Held by the wall x_min; every point starts with one velocity. That excites the modes n = 1, 2, ... with
// amplitudes 1 / (2 n - 1)^2 in the momentum, which runs along a triangle wave with zeros at odd quarters of
// the period. 16 particles per cell, because jittered samples integrate the force with an error that does not
// fall with dx: 1.4 % of the period with 4 particles, 0.1 % with 16.
std::string bar(int cells_per_m, double frame_dt_s) {
  const double c = std::sqrt(kBarYoung_Pa / kDensity);
  return fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmin = [0, 0]\nmax = [1.5, 0.75]\n[grid]\nresolution = {}\n"
      "[time]\nframe_dt_s = {}\nmax_dt_s = 1\n[walls]\nall = \"slip\"\nx_min = \"stick\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.375]\nhalf_size = [0.5, 0.125]\nvelocity = [{}, "
      "0]\nmaterial = \"jelly\"\n"
      "particles_per_cell = 16\njelly = {{ youngs_modulus_Pa = {}, poisson_ratio = 0, density_kg_m3 = {} "
      "}}\n",
      cells_per_m * 3 / 2, frame_dt_s, 0.01 * c, kBarYoung_Pa, kDensity);
}

// Times at which the momentum along x changes sign, by linear interpolation between frames.
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

double period_error(int cells_per_m) {
  const double frame_dt_s = bar_period_s() / 40;
  const std::unique_ptr<Solver> solver = wait_start(bar(cells_per_m, frame_dt_s));
  const std::vector<double> at = zero_crossings(*solver, frame_dt_s, 60);
  EXPECT_EQ(at.size(), 3u) << "zeros at 1/4, 3/4 and 5/4 of the period";
  if (at.size() != 3) return 1;
  return std::abs((at[2] - at[0]) / bar_period_s() - 1);
}

// First order in dx: the wall's nodes hold the half cell before them, and the free end's mass spreads over a
// cell beyond it; together they lengthen the bar by 0.2 cells. The bound is 0.4.
TEST(ElasticBar, OscillatesWithThePeriodOfItsFirstMode) {
  std::array<double, 3> error{};
  for (int level = 0; level < 3; ++level) {
    const int cells = 16 << level;
    error[static_cast<size_t>(level)] = period_error(cells);
    const double bound = 0.4 / (cells * kBarLength_m);
    fmt::print("{} cells: period off by {:.5f} (bound {:.5f})\n", cells, error[static_cast<size_t>(level)],
               bound);
    EXPECT_LE(error[static_cast<size_t>(level)], bound);
  }
  fmt::print("ratios {:.2f}, {:.2f}; first order has 2\n", error[0] / error[1], error[1] / error[2]);
  EXPECT_GE(error[0] / error[1], 1.5);
  EXPECT_GE(error[1] / error[2], 1.5);
}

// The same bar between slippery walls cannot bulge: its waves run with sqrt((lambda + 2 mu) / density), which
// for Poisson's ratio 0.45 is 1.9 times as fast as for 0. Seen to fail: the ratio left out of a scene's
// material.
double confined_period_error(double poisson) {
  constexpr int kCellsPerMetre = 32;
  const double modulus_Pa = kBarYoung_Pa * (1 - poisson) / ((1 + poisson) * (1 - 2 * poisson));
  const double c = std::sqrt(modulus_Pa / kDensity), period_s = 4 * kBarLength_m / c,
               frame_dt_s = period_s / 40;
  const std::unique_ptr<Solver> solver = wait_start(fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1.5, 0.25]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = "
      "{}\nmax_dt_s = 1\n[walls]\nall = \"slip\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.5, "
      "0.125]\nhalf_size "
      "= [0.5, 0.125]\nvelocity = [{}, 0]\nmaterial = \"jelly\"\nparticles_per_cell = 16\njelly = {{ "
      "youngs_modulus_Pa = {}, poisson_ratio = {}, density_kg_m3 = {} }}\n",
      kCellsPerMetre * 3 / 2, frame_dt_s, 0.01 * c, kBarYoung_Pa, poisson, kDensity));
  const std::vector<double> at = zero_crossings(*solver, frame_dt_s, 60);
  EXPECT_EQ(at.size(), 3u) << "zeros at 1/4, 3/4 and 5/4 of the period";
  if (at.size() != 3) return 1;
  fmt::print("Poisson's ratio {}: period {:.5f} s, theory {:.5f}\n", poisson, at[2] - at[0], period_s);
  return std::abs((at[2] - at[0]) / period_s - 1);
}
TEST(ConfinedBar, HasTheWavesOfItsModulus) {
  for (const double poisson : {0.0, 0.3, 0.45})
    EXPECT_LE(confined_period_error(poisson), 0.4 / 32) << poisson;
}

// APIC damps shapes of a few cells. Of the bar's energy, kinetic and elastic, at most so much is lost in its
// first period; the loss falls with dx, and with the fine grid is a few percent: a solver that damps more
// would pass every test of periods. The sharp front with which the bar starts is part of it.
TEST(ElasticBar, LosesLessEnergyOnFinerGrids) {
  std::array<double, 3> lost{};
  for (int level = 0; level < 3; ++level) {
    const std::unique_ptr<Solver> solver = wait_start(bar(16 << level, bar_period_s()));
    const double start = solver->wait_stats().kinetic_J;
    wait_advance(*solver, 1);
    const FrameStats s = solver->wait_stats();
    lost[static_cast<size_t>(level)] = 1 - (s.kinetic_J + s.elastic_J) / start;
    fmt::print("{} cells: {:.4f} of the energy is lost in a period\n", 16 << level,
               lost[static_cast<size_t>(level)]);
  }
  EXPECT_LE(lost[0], 0.15);
  EXPECT_LE(lost[2], 0.05);
  EXPECT_GE(lost[0] / lost[1], 1.3);
  EXPECT_GE(lost[1] / lost[2], 1.3);
  EXPECT_GE(lost[2], 0);
}

constexpr double kBlockYoung_Pa = 3e4, kBlockHeight_m = 0.3, kGravity = 9.81;

std::string block(int dim, int cells_per_m, double frame_dt_s) {
  const bool solid = dim == 3;
  return fmt::format(
      "dim = {}\n[domain]\nmax = {}\n[grid]\nresolution = {}\n[time]\nframe_dt_s = {}\nmax_dt_s = 1\n"
      "[[emitter]]\nshape = \"box\"\ncenter = {}\nhalf_size = {}\nmaterial = \"jelly\"\n"
      "particles_per_cell = {}\njelly = {{ youngs_modulus_Pa = {}, poisson_ratio = 0, density_kg_m3 = {} "
      "}}\n",
      dim, solid ? "[0.5, 0.5, 0.5]" : "[0.5, 0.5]", cells_per_m / 2, frame_dt_s,
      solid ? "[0.25, 0.15, 0.25]" : "[0.25, 0.15]", solid ? "[0.1, 0.15, 0.1]" : "[0.1, 0.15]",
      solid ? 27 : 16, kBlockYoung_Pa, kDensity);
}

// Returns how far the middle of a column of neo-Hookean material, with Poisson's ratio 0, sinks under its own
// weight: at rest the stress E / 2 (s - 1 / s) carries what is above. Midpoints, an error of 1e-7.
double neo_hookean_sag() {
  constexpr int kPieces = 1000;
  const double dy = kBlockHeight_m / kPieces;
  double displacement = 0, sum = 0;
  for (int i = 0; i < kPieces; ++i) {
    const double above = kBlockHeight_m - (i + 0.5) * dy,
                 q = 2 * kDensity * kGravity * above / kBlockYoung_Pa;
    const double strain = (std::sqrt(q * q + 4) - q) / 2 - 1;
    sum += displacement + strain * dy / 2;
    displacement += strain * dy;
  }
  return -sum / kPieces;
}

// By Hooke the displacement is -rho g / E (h y - y^2 / 2), on average -rho g h^2 / (3 E); the block swings
// about it with the period of a bar, which an average over whole periods removes. The floor's nodes hold the
// half cell above them by less than the material would: that adds the strain rho g h / E over half a cell,
// 1.5 dx / h of the mean. The mass of the top spreads over a cell above it, which adds up to dx / h.
void expect_sag(int dim, int cells_per_m) {
  const double period = 4 * kBlockHeight_m / std::sqrt(kBlockYoung_Pa / kDensity);
  const scene::SceneConfig scene = parse_physics_scene(block(dim, cells_per_m, period / 8));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const FrameStats start = solver->wait_stats();
  const double height = mean_position(solver->wait_snapshot()).y();
  const double exact = neo_hookean_sag();
  double sag = 0, most_energy = 0, last_speed = 0;
  constexpr int kFrames = 32;
  for (int frame = 0; frame < kFrames; ++frame) {
    solver->wait_advance_frame();
    const FrameStats stats = solver->wait_stats();
    sag += (height - mean_position(solver->wait_snapshot()).y()) / kFrames;
    most_energy = std::max(most_energy, stats.kinetic_J + stats.potential_J - start.potential_J);
    last_speed = stats.max_speed_m_s;
  }
  const double bound = 2.5 * scene.dx_m() / kBlockHeight_m;
  fmt::print(
      "sags {:.5f} m, the law {:.5f} m, off by {:.4f} (bound {:.4f}); energy gained {:.2e} J, speed {:.3g} "
      "m/s\n",
      sag, exact, std::abs(sag / exact - 1), bound, most_energy, last_speed);
  EXPECT_LE(std::abs(sag / exact - 1), bound);
  // Elastic energy is not negative, so motion and height together never exceed the start but for the
  // integrator's own error, which is a part c dt / h of the energy that swings: m g 2 sag.
  EXPECT_LE(most_energy,
            scene.time.cfl * scene.dx_m() / kBlockHeight_m * start.mass_kg * kGravity * 2 * exact);
}

TEST(RestingJelly, SagsUnderItsWeightAndGainsNoEnergy) { expect_sag(2, 64); }
TEST(RestingJelly, SagsUnderItsWeightInThreeDimensions) { expect_sag(3, 32); }

}  // namespace
}  // namespace coppice::mpm
