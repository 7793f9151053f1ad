// Free fall and the conservation of mass, momentum and angular momentum.
//
// Seen to fail when the code was broken: gravity with the wrong sign and snapshots in the order of
// memory (free fall), APIC's affine term left out (all angular momentum lost), a tile's overlap left out
// of the grid's sum (mass, momentum).
#include <array>
#include <cmath>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

struct FallCase {
  int dim;
  const char* material;
};
// Names the case in test lists.
void PrintTo(const FallCase& c, std::ostream* out) { *out << c.material << " in " << c.dim << "-D"; }

class FreeFall : public testing::TestWithParam<FallCase> {};

constexpr double kFallDt_s = 2e-3;  // 25 to a frame

// Moduli so soft that time.max_dt_s sets the step: all steps are equal.
std::string falling_blob(const FallCase& c) {
  const char* parameters =
      std::string(c.material) == "water" ? "{ bulk_modulus_Pa = 1e3 }" : "{ youngs_modulus_Pa = 1e3 }";
  const bool solid = c.dim == 3;
  return fmt::format(
      "dim = {}\ngravity = {}\n[domain]\nmax = {}\n[grid]\nresolution = 32\n"
      "[time]\nframe_dt_s = 0.05\nmax_dt_s = {}\n[[emitter]]\nshape = \"sphere\"\ncenter = {}\nradius = "
      "{}\nvelocity = {}\n"
      "material = \"{}\"\n{} = {}\n",
      c.dim, solid ? "[0.7, -9.81, 0.3]" : "[0.7, -9.81]", solid ? "[1, 1, 1]" : "[1, 1]", kFallDt_s,
      solid ? "[0.5, 0.7, 0.5]" : "[0.5, 0.7]", solid ? 0.07 : 0.1, solid ? "[0.4, 0.5, -0.2]" : "[0.4, 0.5]",
      c.material, c.material, parameters);
}

// Symplectic Euler with n equal steps falls along x0 + v0 t + g t (t + dt) / 2: from the parabola
// by g t dt / 2, first order in dt. Both laws are tested: the discrete one to rounding, which a
// wrong force of any kind exceeds.
TEST_P(FreeFall, FollowsTheParabola) {
  const scene::SceneConfig scene = parse_physics_scene(falling_blob(GetParam()));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const ParticleSnapshot start = solver->wait_snapshot();
  const Vec3d v0 = scene.emitters[0].velocity, g = scene.gravity;
  double steps = 0;
  for (int frame = 1; frame <= 4; ++frame) {
    solver->wait_advance_frame();
    const ParticleSnapshot now = solver->wait_snapshot();
    const FrameStats stats = solver->wait_stats();
    steps += static_cast<double>(stats.steps);
    const double t = frame * scene.time.frame_dt_s;
    ASSERT_NEAR(stats.time_s, t, 1e-12);
    ASSERT_NEAR(stats.dt_s, kFallDt_s,
                1e-6 * kFallDt_s);  // the frame's rest after float steps, in equal parts
    ASSERT_EQ(steps, std::round(t / kFallDt_s));
    // A step interpolates a velocity from 3^D nodes and back: 16 roundings of the speed; the
    // gradient of the stencil's rounding, 4 |v| / dx, pushes neither position nor velocity. A
    // position near 1 m rounds once a step.
    const double speed = (v0 + g * t).norm() + v0.norm();
    const double v_bound = 16 * steps * kRounding * speed, x_bound = t * v_bound + 2 * steps * kRounding;
    double worst_v = 0, worst_x = 0, worst_parabola = 0;
    const auto compare = [&](const Vec3d& x0, const Vec3d& x, const Vec3d& v) {
      worst_v = std::max(worst_v, (v - v0 - g * t).norm());
      worst_x = std::max(worst_x, (x - x0 - v0 * t - 0.5 * g * t * (t + kFallDt_s)).norm());
      worst_parabola = std::max(worst_parabola, (x - x0 - v0 * t - 0.5 * g * t * t).norm());
    };
    // Water that is sampled at random spreads until it is as dense everywhere: its middle falls.
    if (std::string(GetParam().material) == "water") {
      compare(mean_position(start), mean_position(now), mean_velocity(now));
    } else {
      for (size_t i = 0; i < now.position.size(); ++i)
        compare(start.position[i].cast<double>(), now.position[i].cast<double>(),
                now.velocity[i].cast<double>());
    }
    fmt::print(
        "t {:.2f}: velocity off by {:.2e} (bound {:.2e}), position {:.2e} ({:.2e}), parabola {:.3e} "
        "({:.3e})\n",
        t, worst_v, v_bound, worst_x, x_bound, worst_parabola, 0.5 * g.norm() * t * kFallDt_s + x_bound);
    EXPECT_LE(worst_v, v_bound);
    EXPECT_LE(worst_x, x_bound);
    EXPECT_LE(worst_parabola, 0.5 * g.norm() * t * kFallDt_s + x_bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Materials, FreeFall,
                         testing::Values(FallCase{2, "snow"}, FallCase{2, "jelly"}, FallCase{2, "water"},
                                         FallCase{2, "sand"}, FallCase{3, "snow"}, FallCase{3, "jelly"},
                                         FallCase{3, "water"}, FallCase{3, "sand"}),
                         [](const auto& c) { return fmt::format("{}{}D", c.param.material, c.param.dim); });

// Two bodies of different material that meet off their centres.
std::string collision(int dim, const char* first, const char* second) {
  const bool solid = dim == 3;
  return fmt::format(
      "dim = {}\ngravity = {}\n[domain]\nmin = {}\nmax = {}\n[grid]\nresolution = {}\n[time]\nframe_dt_s = "
      "0.02\n"
      "[[emitter]]\nshape = \"sphere\"\ncenter = {}\nradius = 0.15\nvelocity = {}\nmaterial = \"{}\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = {}\nhalf_size = {}\nvelocity = {}\nmaterial = \"{}\"\n",
      dim, solid ? "[0, 0, 0]" : "[0, 0]", solid ? "[-1, -1, -1]" : "[-1, -1]",
      solid ? "[1, 1, 1]" : "[1, 1]", solid ? 40 : 64, solid ? "[-0.25, 0.05, 0]" : "[-0.25, 0.05]",
      solid ? "[2, 0.1, 0.2]" : "[2, 0.1]", first, solid ? "[0.2, -0.05, 0]" : "[0.2, -0.05]",
      solid ? "[0.13, 0.13, 0.13]" : "[0.13, 0.13]", solid ? "[-1.5, 0, 0.1]" : "[-1.5, 0]", second);
}

double momentum_scale(const ParticleSnapshot& s, const FrameStats& stats) {
  double speed = 0;
  for (const Vec3f& v : s.velocity) speed = std::max(speed, static_cast<double>(v.norm()));
  return stats.mass_kg * speed;
}

// A step rounds each particle's momentum about once. Were every rounding of the same sign, the total would be
// off by one relative rounding per step.
void expect_conserved(int dim, const char* first, const char* second, int frames) {
  const scene::SceneConfig scene = parse_physics_scene(collision(dim, first, second));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const FrameStats start = solver->wait_stats();
  const double scale = momentum_scale(solver->wait_snapshot(), start);
  double steps = 0;
  for (int frame = 1; frame <= frames; ++frame) {
    solver->wait_advance_frame();
    const FrameStats now = solver->wait_stats();
    steps += static_cast<double>(now.steps);
    EXPECT_EQ(now.mass_kg, start.mass_kg)
        << "frame " << frame;  // the same particles; the order changes no sum of them
    const double off = (now.momentum - start.momentum).norm(), bound = steps * kRounding * scale;
    if (frame == frames) {
      fmt::print(
          "{} on {}, {} particles, {} steps, {} sorts in the last frame: momentum off by {:.2e} of {:.3g} kg "
          "m/s (bound {:.2e})\n",
          first, second, now.particles, steps, now.sorts, off, scale, bound);
    }
    EXPECT_LE(off, bound) << "frame " << frame;
  }
  // They did collide: energy went into deformation.
  EXPECT_LT(solver->wait_stats().kinetic_J, 0.8 * start.kinetic_J);
}

TEST(Conservation, KeepsMassAndMomentumOfCollidingJellyAndSnow) { expect_conserved(2, "jelly", "snow", 10); }
TEST(Conservation, KeepsMassAndMomentumOfCollidingWaterAndSand) { expect_conserved(2, "water", "sand", 10); }
TEST(Conservation, KeepsMassAndMomentumInThreeDimensions) { expect_conserved(3, "snow", "jelly", 6); }

// The grid's mass is the particles': sum of density times cell area.
TEST(Conservation, PutsTheWholeMassOnTheGrid) {
  const std::unique_ptr<Solver> solver = wait_start(collision(2, "jelly", "sand"));
  wait_advance(*solver, 2);
  const DensityBlocks d = solver->wait_density();
  double mass = 0;
  for (const float value : d.values) mass += static_cast<double>(value) * d.dx * d.dx;
  const double expected = solver->wait_stats().mass_kg;
  // A node sums up to about 36 particles from 4 tiles, each with three products.
  EXPECT_NEAR(mass, expected, 40 * kRounding * expected);
}

// APIC keeps the sum of x cross m v + m dx^2/4 curl v but for rounding: over 2,000 steps 2e-6 of it with
// errors of random signs.
void expect_angular_momentum_is_kept(int dim, double drift_m_s) {
  const std::unique_ptr<Solver> solver = wait_start_tumbling(dim, drift_m_s);
  const FrameStats start = solver->wait_stats();
  ASSERT_GT(std::abs(start.angular_momentum.z()), 0.01 * start.mass_kg);
  if (dim == 2) {
    EXPECT_EQ(start.angular_momentum.head<2>(), Vec2d::Zero());
  }
  double worst = 0;
  while (solver->steps() < 2000) {
    solver->wait_advance_frame();
    const Vec3d change = solver->wait_stats().angular_momentum - start.angular_momentum;
    worst = std::max(worst, change.norm() / start.angular_momentum.norm());
  }
  fmt::print("{}-D, drift {} m/s: angular momentum off by at most {:.2e} of it over {} steps (bound 1e-5)\n",
             dim, drift_m_s, worst, solver->steps());
  EXPECT_LE(worst, 1e-5);
}
TEST(Conservation, KeepsTheAngularMomentumOfATumblingBody) {
  expect_angular_momentum_is_kept(2, 0);
  expect_angular_momentum_is_kept(2, 0.2);
  expect_angular_momentum_is_kept(3, 0);
  expect_angular_momentum_is_kept(3, -0.1);
}

// A jelly square that was stretched all over swings between elastic and kinetic energy: their sum falls, and
// never rises, and the half of it that a swing has as motion comes back as deformation.
TEST(Conservation, EnergyOfASwingingSquareOnlyFalls) {
  const std::unique_ptr<Solver> solver = wait_start(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmin = [-1, -1]\nmax = [1, 1]\n[grid]\nresolution = "
      "64\n[time]\nframe_dt_s = 0.005\n[[emitter]]\nshape = \"box\"\ncenter = [0, 0.1]\nhalf_size = [0.2, "
      "0.1]\nvelocity = [0, -0.5]\nmaterial = \"jelly\"\n[[emitter]]\nshape = \"box\"\ncenter = [0, "
      "-0.1]\nhalf_size = [0.2, 0.1]\nvelocity = [0, 0.5]\nmaterial = \"jelly\"\n");
  const double start = solver->wait_stats().kinetic_J;
  EXPECT_EQ(solver->wait_stats().elastic_J, 0);
  double most_elastic = 0, most_total = 0, least_kinetic = start, last = 0;
  for (int frame = 0; frame < 60; ++frame) {
    solver->wait_advance_frame();
    const FrameStats s = solver->wait_stats();
    last = s.kinetic_J + s.elastic_J;
    most_elastic = std::max(most_elastic, s.elastic_J);
    most_total = std::max(most_total, last);
    least_kinetic = std::min(least_kinetic, s.kinetic_J);
  }
  fmt::print(
      "of {:.3f} J at most {:.3f} elastic, at least {:.3f} kinetic; in all at most {:.3f}, {:.3f} at the "
      "end\n",
      start, most_elastic, least_kinetic, most_total, last);
  EXPECT_LE(most_total, 1.01 * start);
  EXPECT_GE(most_elastic, 0.5 * start);
  EXPECT_GE(last, 0.4 * start);
}

}  // namespace
}  // namespace coppice::mpm
