// Water: at rest the pressure is the weight above; in motion the walls add no energy.
//
// Seen to fail when the code was broken: MLS-MPM's 4 / dx^2 taken as 3 / dx^2 (pressure off by a third), J
// following half the divergence (sinks twice as far), gravity or stress with the wrong sign.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kBulk_Pa = 2e5, kGamma = 7, kDensity = 1000, kGravity = 9.81, kDepth_m = 0.5,
                 kWidth_m = 0.25;
constexpr int kLayers = 8;

double acoustic_period_s() { return 4 * kDepth_m / std::sqrt(kBulk_Pa / kDensity); }

std::string pool(int cells_per_m, double frame_dt_s, int sampling) {
  return fmt::format(
      "dim = 2\ngravity = [0, {}]\n[domain]\nmin = [0, 0]\nmax = [{}, 1]\n[grid]\nresolution = {}\n"
      "[time]\nframe_dt_s = {}\nmax_dt_s = 1\n[walls]\nall = \"slip\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [{}, {}]\nhalf_size = [{}, {}]\nmaterial = "
      "\"water\"\nparticles_per_cell = {}\nseed = {}\n"
      "water = {{ bulk_modulus_Pa = {}, gamma = {}, density_kg_m3 = {} }}\n",
      -kGravity, kWidth_m, cells_per_m, frame_dt_s, kWidth_m / 2, kDepth_m / 2, kWidth_m / 2, kDepth_m / 2, 9,
      sampling, kBulk_Pa, kGamma, kDensity);
}

// The solver's: water without tension.
double pressure_Pa(double j) { return std::max(0.0, kBulk_Pa / kGamma * (std::pow(j, -kGamma) - 1)); }

// Adds each layer's mean pressure; a layer is an equal share of the mass, counted from below.
void add_layers(const ParticleSnapshot& s, std::vector<double>& pressure) {
  std::vector<size_t> order(s.position.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return s.position[a].y() < s.position[b].y(); });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const size_t layer = rank * kLayers / order.size();
    pressure[layer] += pressure_Pa(s.volume_ratio[order[rank]]) * kLayers / static_cast<double>(order.size());
  }
}

struct PoolErrors {
  double pressure = 0;   // relative L2
  double sinking_m = 0;  // of how far the middle of mass sinks as the water is compressed
};

// How far the middle of mass sinks: a share m of the mass, counted from below, bears p = rho g depth (1 - m),
// so it has J = (1 + gamma p / K)^(-1 / gamma) and carries a share 1 - m of the mass down by depth (1 - J).
double sinking_m() {
  constexpr int kSteps = 1000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double above = 1 - (i + 0.5) / kSteps, p = kDensity * kGravity * kDepth_m * above;
    sum += above * kDepth_m * (1 - std::pow(1 + kGamma * p / kBulk_Pa, -1 / kGamma)) / kSteps;
  }
  return sum;
}

// Errors of averages over whole periods of the pool's first acoustic mode, in which a pool that
// starts without pressure swings between none and twice the weight.
PoolErrors pool_errors(int cells_per_m, int sampling) {
  constexpr int kPeriodFrames = 8, kFrames = 15 * kPeriodFrames;
  const std::unique_ptr<Solver> solver =
      wait_start(pool(cells_per_m, acoustic_period_s() / kPeriodFrames, sampling));
  const double start = mean_position(solver->wait_snapshot()).y();
  wait_advance(*solver, kFrames);
  double sinking = 0;
  std::vector<double> pressure(kLayers);
  for (int frame = 0; frame < kFrames; ++frame) {
    solver->wait_advance_frame();
    const ParticleSnapshot s = solver->wait_snapshot();
    add_layers(s, pressure);
    sinking += (start - mean_position(s).y()) / kFrames;
  }
  double error2 = 0, exact2 = 0;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const double exact = kDensity * kGravity * kDepth_m * (1 - (static_cast<double>(layer) + 0.5) / kLayers);
    const double mean = pressure[layer] / kFrames;
    fmt::print("layer {}: {:.0f} Pa, weight above {:.0f} Pa\n", layer, mean, exact);
    error2 += (mean - exact) * (mean - exact), exact2 += exact * exact;
  }
  fmt::print("the middle sinks by {:.5f} m, theory {:.5f} m\n", sinking, sinking_m());
  return {std::sqrt(error2 / exact2), std::abs(sinking - sinking_m())};
}

// The pressure in a layer is the weight above it, however compressed the water is. First order in dx: within
// a cell of the floor, whose nodes stand still, particles are squeezed too much, and the surface is a cell
// thick. The bound is dx / depth.
TEST(RestingWater, HasHydrostaticPressure) {
  constexpr int kSamplings = 6;
  std::array<double, 3> error{};
  for (size_t level = 0; level < 3; ++level) {
    const int cells = 16 << level;
    // Single samplings differ by a tenth: at 64 cells six gave 1.07 to 1.21 cells. Their mean counts.
    PoolErrors errors;
    for (int sampling = 1; sampling <= kSamplings; ++sampling) {
      const PoolErrors one = pool_errors(cells, sampling);
      errors.pressure += one.pressure / kSamplings;
      errors.sinking_m = std::max(errors.sinking_m, one.sinking_m);
    }
    error[level] = errors.pressure;
    // The weight of little more than a cell: water without tension has no pressure below zero that would make
    // up for noise above it.
    const double bound = 1.2 / (cells * kDepth_m);
    fmt::print("{} cells: L2 error {:.4f} (bound {:.4f})\n", cells, error[level], bound);
    EXPECT_LE(error[level], bound);
    // Water that is sampled at random spreads until it is as dense everywhere.
    EXPECT_LE(errors.sinking_m, 0.05 / cells);
  }
  // Over two halvings: 4 for first order; 1.5 each is asked for, as the sampling's noise does not fall with
  // dx.
  fmt::print("ratio {:.2f}\n", error[0] / error[2]);
  EXPECT_GE(error[0] / error[2], 1.5 * 1.5);
}

// Seen to fail: depth 0.257 m after 20 s, with 1.8 times the density here and there, and noise of the
// pressure of half the weight of the water.
void expect_depth_is_kept(const char* half_size, const char* center) {
  constexpr double kWidth = 0.64, kDepth = 0.32, kStiffness_Pa = 1e5;
  const auto solver = wait_start(parse_physics_scene(
      fmt::format("dim = 2\n[domain]\nmax = [{0}, 0.64]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 1\n"
                  "[walls]\nall = \"slip\"\n[[emitter]]\nshape = \"box\"\ncenter = {1}\nhalf_size = {2}\n"
                  "material = \"water\"\nwater = {{ bulk_modulus_Pa = {3} }}\n",
                  kWidth, center, half_size, kStiffness_Pa)));
  for (int second = 1; second <= 20; ++second) {
    solver->wait_advance_frame();
    if (second % 10 != 0) continue;
    const ParticleSnapshot s = solver->wait_snapshot();
    const double depth = 2 * mean_position(s).y();
    // The weight alone takes 1 % of it.
    const double exact = kDepth * (1 - kDensity * kGravity * kDepth / 3 / kStiffness_Pa);
    double error2 = 0;
    for (size_t i = 0; i < s.position.size(); ++i) {
      const double p = kStiffness_Pa / kGamma * (std::pow(s.volume_ratio[i], -kGamma) - 1);
      const double weight = kDensity * kGravity * std::max(0.0, kDepth - s.position[i].y());
      error2 += std::pow(std::max(p, 0.0) - weight, 2) / static_cast<double>(s.position.size());
    }
    const double noise = std::sqrt(error2) / (kDensity * kGravity * kDepth);
    fmt::print("{} s: depth {:.4f} m, theory {:.4f} m; noise of pressure {:.3f} rho g H\n", second, depth,
               exact, noise);
    EXPECT_NEAR(depth, exact, 0.015 * exact);
    EXPECT_LT(noise, 0.36);
  }
}

TEST(RestingWater, KeepsItsDepth) { expect_depth_is_kept("[0.32, 0.16]", "[0.32, 0.16]"); }
TEST(SloshingWater, KeepsItsDepth) { expect_depth_is_kept("[0.16, 0.32]", "[0.16, 0.32]"); }

// Above a plate that begins to move the speed falls as erfc(y / (2 sqrt(nu t))): Stokes' first problem.
TEST(ViscousWater, IsTakenAlongByAPlate) {
  constexpr double kSpeed = 0.5, kViscosity = 0.01, kTime = 0.1, kPlate = 13.0 / 128;
  const auto solver = wait_start(parse_physics_scene(fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1.5, 0.6]\n[grid]\nresolution = 192\n[time]\n"
      "frame_dt_s = {}\n[walls]\nall = \"slip\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.75, 0.3]\n"
      "half_size = [0.75, 0.2]\nmaterial = \"water\"\nparticles_per_cell = 9\n"
      "water = {{ viscosity_Pa_s = {}, density_kg_m3 = 1000 }}\n"
      "[[collider]]\nshape = \"box\"\ncenter = [0.75, 0]\nhalf_size = [2, {}]\nvelocity = [{}, 0]\n"
      "boundary = \"stick\"\n",
      kTime / 4, 1000 * kViscosity, kPlate, kSpeed)));
  wait_advance(*solver, 4);
  const ParticleSnapshot s = solver->wait_snapshot();
  double worst = 0;
  for (double y = 0.02; y < 0.1; y += 0.02) {
    const double measured = mean_of(
        s,
        [&](size_t i) {
          return std::abs(s.position[i].x() - 0.75) < 0.2 && std::abs(s.position[i].y() - kPlate - y) < 0.005;
        },
        [&](size_t i) -> double { return s.velocity[i].x(); });
    const double exact = kSpeed * std::erfc(y / (2 * std::sqrt(kViscosity * kTime)));
    fmt::print("{:.3f} m above: {:.4f} m/s, theory {:.4f} m/s\n", y, measured, exact);
    worst = std::max(worst, std::abs(measured - exact));
  }
  // The plate acts within half a cell of its surface, where the speed falls by U / sqrt(pi nu t) per metre.
  EXPECT_LT(worst, 0.5 / 128 * kSpeed / std::sqrt(M_PI * kViscosity * kTime));
}

// A column that breaks loose and splashes around the box. It starts without elastic energy, so motion and
// height together never exceed the start but for the integrator's error; nothing moves much faster than a
// fall through the whole height, and the walls hold everything.
void expect_calm(int dim, int resolution, int frames) {
  const bool solid = dim == 3;
  const scene::SceneConfig scene = parse_physics_scene(fmt::format(
      "dim = {}\n[domain]\nmax = {}\n[grid]\nresolution = {}\n[time]\nframe_dt_s = 0.05\n"
      "[[emitter]]\nshape = \"box\"\ncenter = {}\nhalf_size = {}\nmaterial = \"water\"\n",
      dim, solid ? "[1, 1, 0.25]" : "[1, 1]", resolution, solid ? "[0.15, 0.3, 0.125]" : "[0.15, 0.3]",
      solid ? "[0.15, 0.3, 0.125]" : "[0.15, 0.3]"));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const FrameStats start = solver->wait_stats();
  double most_gained = 0, most_speed = 0;
  for (int frame = 0; frame < frames; ++frame) {
    solver->wait_advance_frame();
    const FrameStats now = solver->wait_stats();
    most_gained = std::max(most_gained, now.kinetic_J + now.potential_J - start.potential_J);
    most_speed = std::max(most_speed, now.max_speed_m_s);
    const ParticleSnapshot s = solver->wait_snapshot();
    for (const Vec3f& p : s.position) {
      ASSERT_TRUE(p.minCoeff() >= 0 && p.x() <= 1 && p.y() <= 1 && p.z() <= (solid ? 0.25F : 0.0F))
          << p.transpose();
    }
  }
  const double fall = std::sqrt(2 * kGravity * 1.0);
  fmt::print(
      "{} particles: energy gained {:.3g} J of {:.3g} J, fastest {:.3g} m/s (fall through the box {:.3g} "
      "m/s)\n",
      start.particles, most_gained, start.potential_J, most_speed, fall);
  EXPECT_LE(most_gained, 0.01 * start.potential_J);
  EXPECT_LE(most_speed, 2 * fall);
}

TEST(SplashingWater, GainsNoEnergyAtTheWalls) { expect_calm(2, 48, 40); }
TEST(SplashingWater, GainsNoEnergyAtTheWallsInThreeDimensions) { expect_calm(3, 24, 16); }

}  // namespace
}  // namespace coppice::mpm
