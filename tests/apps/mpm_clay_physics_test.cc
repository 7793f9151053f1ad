// Clay and mud in scenes: a vertical face that stands or slumps, and mud that flows down a slope.
//
// Seen to fail when the code was broken: the yield stress doubled (the high face stands, the mud's plug is
// all of it), the viscosity left out (the mud's speed has no bound).
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kGravity = 9.81, kDensity = 1800, kYield_Pa = 2e3;

// Returns how far the upper corner of a face sinks, relative to its height, in 1 s; the other side is a wall
// of symmetry.
double slump(double height_m) {
  const scene::SceneConfig scene = parse_physics_scene(
      fmt::format("dim = 2\n[domain]\nmax = [{0}, {0}]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.25\n"
                  "[walls]\nall = \"slip\"\ny_min = \"stick\"\n[[emitter]]\nshape = \"box\"\ncenter = [{1}, "
                  "{2}]\nhalf_size = "
                  "[{1}, {2}]\nmaterial = \"clay\"\nparticles_per_cell = 9\nclay = {{ youngs_modulus_Pa = "
                  "1e6, poisson_ratio = "
                  "0.3, yield_stress_Pa = {3}, density_kg_m3 = {4} }}\n",
                  2 * height_m, 0.5 * height_m, 0.5 * height_m, kYield_Pa, kDensity));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const ParticleSnapshot start = solver->wait_snapshot();
  const auto corner = [&](size_t i) {
    return start.position[i].x() > 0.9 * height_m && start.position[i].y() > 0.9 * height_m;
  };
  wait_advance(*solver, 4);
  const ParticleSnapshot s = solver->wait_snapshot();
  const double sunk = mean_of(
      s, corner, [&](size_t i) { return static_cast<double>(start.position[i].y() - s.position[i].y()); });
  fmt::print("a face of {:.3f} m: its corner sank by {:.4f} of it\n", height_m, sunk / height_m);
  return sunk / height_m;
}

// A vertical cut in clay without drainage stands up to N = density g H / yield = 3.77 to 3.78 (Pastor, Thai,
// Francescato 2000, "New bounds for the height limit of a vertical slope"). At 0.6 of that it sinks as its
// elasticity and its weight put on at once let it; at 1.8 it slides.
TEST(ClayFace, StandsBelowItsCriticalHeightAndSlidesAbove) {
  const double critical_m = 3.77 * kYield_Pa / (kDensity * kGravity);
  const double low = slump(0.6 * critical_m), high = slump(1.8 * critical_m);
  EXPECT_LE(low, 0.02);
  EXPECT_GE(high, 0.15);
}

// A layer of mud on a slope, in axes turned with it, without ends: a shear flow of Bingham's fluid. Below the
// depth where the shear stress reaches the yield stress it flows, above it is a plug whose speed comes to
// density g sin(slope) d^2 / (2 viscosity), d being the depth of what flows (Mei and Yuhi 2001, "Slow flow of
// a Bingham fluid in a shallow channel of finite width", for a wide one).
TEST(MudLayer, FlowsDownASlopeAsBinghamsFluid) {
  constexpr double kSlope = 0.4, kLayer_m = 0.2, kYield = 200, kViscosity = 200, kMudDensity = 1500;
  const double along = kMudDensity * kGravity * std::sin(kSlope);  // Pa/m
  const double flowing_m = kLayer_m - kYield / along;
  const double expected = along * flowing_m * flowing_m / (2 * kViscosity);
  const scene::SceneConfig scene = parse_physics_scene(fmt::format(
      "dim = 2\ngravity = [{}, {}]\n[domain]\nmax = [3, 0.5]\n[grid]\nresolution = 192\n[time]\nframe_dt_s = "
      "0.1\n[walls]\nall = \"slip\"\ny_min = \"stick\"\n[[emitter]]\nshape = \"box\"\ncenter = [1.2, {}]\n"
      "half_size = [1.2, {}]\nmaterial = \"mud\"\nparticles_per_cell = 9\nmud = {{ youngs_modulus_Pa = 1e6, "
      "yield_stress_Pa = {}, viscosity_Pa_s = {}, density_kg_m3 = {} }}\n",
      kGravity * std::sin(kSlope), -kGravity * std::cos(kSlope), kLayer_m / 2, kLayer_m / 2, kYield,
      kViscosity, kMudDensity));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const ParticleSnapshot start = solver->wait_snapshot();
  const auto speed_at = [&](const ParticleSnapshot& s, double low, double high) {
    return mean_of(
        s,
        [&](size_t i) {
          return std::abs(start.position[i].x() - 1.2F) < 0.15F && start.position[i].y() > low * kLayer_m &&
                 start.position[i].y() < high * kLayer_m;
        },
        [&](size_t i) { return static_cast<double>(s.velocity[i].x()); });
  };
  wait_advance(*solver, 5);  // shear spreads over the layer in 4 / pi^2 density d^2 / viscosity, 0.08 s
  const ParticleSnapshot s = solver->wait_snapshot();
  const double plug = speed_at(s, 0.92, 1.0), below_top = speed_at(s, flowing_m / kLayer_m + 0.05, 0.92),
               half = speed_at(s, 0.45 * flowing_m / kLayer_m, 0.55 * flowing_m / kLayer_m);
  fmt::print(
      "plug {:.3f} m/s (theory {:.3f}), below its top {:.3f}; at half of what flows {:.3f} (theory {:.3f})\n",
      plug, expected, below_top, half, 0.75 * expected);
  EXPECT_NEAR(plug, expected, 0.1 * expected);
  EXPECT_NEAR(below_top, plug, 0.03 * expected);  // it is a plug
  EXPECT_NEAR(half, 0.75 * expected, 0.1 * expected);
}

// Where the yield stress is more than the layer's weight along the slope, it rests.
TEST(MudLayer, RestsBelowItsYieldStress) {
  const std::unique_ptr<Solver> solver = wait_start(
      "dim = 3\ngravity = [1, -9.7, 0]\n[domain]\nmax = [0.6, 0.3, 0.3]\n[grid]\nresolution = "
      "24\n[time]\nframe_dt_s "
      "= 0.1\n[walls]\nall = \"slip\"\ny_min = \"stick\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.3, 0.05, "
      "0.15]\nhalf_size = [0.3, 0.05, 0.15]\nmaterial = \"mud\"\nmud = { yield_stress_Pa = 300 }\n");
  wait_advance(*solver, 10);
  const FrameStats stats = solver->wait_stats();
  fmt::print("kinetic energy {:.3e} J, elastic {:.3e} J\n", stats.kinetic_J, stats.elastic_J);
  EXPECT_LE(stats.kinetic_J, 1e-5 * stats.mass_kg * kGravity * 0.05);
}

// A ball that is squeezed by its fall keeps most of its new shape: clay does not spring back as jelly does.
TEST(ClayBall, KeepsADentAndItsEnergyIsGone) {
  const auto height_after = [](const char* material) {
    const std::unique_ptr<Solver> solver = wait_start(fmt::format(
        "dim = 2\n[domain]\nmax = [1, 0.6]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.1\n[walls]\nall "
        "= "
        "\"stick\"\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.13]\nradius = 0.1\nvelocity = [0, -4]\n"
        "particles_per_cell = 9\nmaterial = \"{}\"\n{}",
        material, material == std::string("clay") ? "clay = { yield_stress_Pa = 1500 }\n" : ""));
    wait_advance(*solver, 8);
    const ParticleSnapshot s = solver->wait_snapshot();
    double low = 1, high = 0;
    for (const Vec3f& p : s.position)
      low = std::min<double>(low, p.y()), high = std::max<double>(high, p.y());
    fmt::print("{}: height {:.3f} m, elastic energy {:.3g} J\n", material, high - low,
               solver->wait_stats().elastic_J);
    return high - low;
  };
  const double clay = height_after("clay"), jelly = height_after("jelly");
  EXPECT_LE(clay, 0.17);
  EXPECT_GE(clay, 0.05);
  EXPECT_GE(jelly, 0.18);
}

}  // namespace
}  // namespace coppice::mpm
