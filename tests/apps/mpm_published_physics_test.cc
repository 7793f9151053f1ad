// Experiments that were published, and cases whose answer is known in closed form: a dam that breaks, columns
// of sand that collapse, snow that is pressed, and a block on the slope of a collider.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kGravity = 9.81, kDegree = std::numbers::pi / 180;

// x of the particle before which are all but a share of the others.
double front(const ParticleSnapshot& s, double share) {
  std::vector<float> x;
  for (const Vec3f& p : s.position) x.push_back(p.x());
  std::sort(x.begin(), x.end());
  return x[static_cast<size_t>(static_cast<double>(x.size() - 1) * (1 - share))];
}

// Water twice as high as wide, let go at once on a dry floor: the front over time, in widths and sqrt(width /
// 2 g) (Martin and Moyce 1952, "An experimental study of the collapse of liquid columns on a rigid horizontal
// plane", Phil. Trans. R. Soc. A 244, figure 3, n^2 = 2, width 0.0572 m). The front is where 99 % of the
// water lie before it: single drops run ahead.
TEST(DamBreak, RunsAsMartinAndMoycesWater) {
  constexpr double kWidth_m = 0.3;
  constexpr std::array<std::pair<double, double>, 6> kMeasured = {
      {{0.849, 1.245}, {1.212, 1.443}, {1.602, 1.884}, {2.283, 2.689}, {2.950, 3.728}, {3.598, 4.528}}};
  const double unit_s = std::sqrt(kWidth_m / (2 * kGravity));
  const std::unique_ptr<Solver> solver = wait_start(fmt::format(
      "dim = 2\n[domain]\nmax = [2, 1]\n[grid]\nresolution = 128\n[time]\nframe_dt_s = {}\n[walls]\nall = "
      "\"separate\"\n[[emitter]]\nshape = \"box\"\ncenter = [{}, {}]\nhalf_size = [{}, {}]\nmaterial = "
      "\"water\"\nparticles_per_cell = 9\nwater = {{ bulk_modulus_Pa = 4e5 }}\n",
      0.05 * unit_s, kWidth_m / 2, kWidth_m, kWidth_m / 2, kWidth_m));
  for (const auto& [time, widths] : kMeasured) {
    wait_advance(*solver, static_cast<int>(std::lround(time / 0.05)) - solver->frame());
    const double now = front(solver->wait_snapshot(), 0.01) / kWidth_m;
    fmt::print("front at {:.3f}: {:.3f} widths, measured {:.3f} ({:+.1f} %)\n", time, now, widths,
               100 * (now / widths - 1));
    EXPECT_NEAR(now, widths, 0.08 * widths) << time;
  }
}

// Columns of sand that are let go in a channel: run-out 1.2 a for a = height / width below 1.8 and 1.9
// a^(2/3) above 2.8, in widths (Lube, Huppert, Sparks, Freundt 2005, "Collapses of two-dimensional granular
// columns", Phys. Rev. E 72), for sand that rests at 30 degrees, which in plane flow a friction angle of 34
// gives within a degree. The front is where 99.5 % of the sand lie before it. It comes to rest in 3.3
// sqrt(height / g).
TEST(SandColumn, RunsOutAsLubesColumns) {
  for (const double a : {1.0, 3.0, 6.0}) {
    const double width = a < 2 ? 0.25 : a < 4 ? 0.12 : 0.08, height = a * width;
    const double expected = a < 2.3 ? 1.2 * a : 1.9 * std::pow(a, 2.0 / 3),
                 most = width * (2 + 1.3 * expected);
    const std::unique_ptr<Solver> solver = wait_start(fmt::format(
        "dim = 2\n[domain]\nmax = [{}, {}]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = {}\n[walls]\nall = "
        "\"slip\"\ny_min = \"stick\"\n[[emitter]]\nshape = \"box\"\ncenter = [{}, {}]\nhalf_size = [{}, "
        "{}]\nmaterial = \"sand\"\nparticles_per_cell = 9\nsand = {{ youngs_modulus_Pa = 5e5, "
        "friction_angle_deg "
        "= 34 }}\n",
        most, height * 1.2, std::lround(most / width * 16), 4 * std::sqrt(height / kGravity), width / 2,
        height / 2, width / 2, height / 2));
    wait_advance(*solver, 1);
    const double out = front(solver->wait_snapshot(), 0.005) / width - 1;
    fmt::print("a = {}: run-out {:.3f} widths, measured {:.3f} ({:+.1f} %)\n", a, out, expected,
               100 * (out / expected - 1));
    EXPECT_NEAR(out, expected, 0.15 * expected) << a;
  }
}

// A block of stiff jelly slides down the upper face of a box that is turned: g (sin - friction cos). The
// acceleration is from 0.1 s on, when the jerk of its weight has died away.
TEST(TurnedCollider, SlowsASlidingBlockByCoulombsLaw) {
  for (const double friction : {0.0, 0.2, 0.3}) {
    constexpr double kTilt_deg = 25;
    const double tilt = kTilt_deg * kDegree;
    // The block lies on the face, 0.55 m up the slope from the middle of the box.
    const double along = -0.55, above = 0.1 + 0.075;
    const Vec2d down(std::cos(tilt), -std::sin(tilt)), out(std::sin(tilt), std::cos(tilt));
    const Vec2d block = Vec2d(1, 0.6) + along * down + (above + 0.002) * out;
    const std::unique_ptr<Solver> solver = wait_start(fmt::format(
        "dim = 2\n[domain]\nmax = [2, 1.4]\n[grid]\nresolution = 128\n[time]\nframe_dt_s = "
        "0.05\n[[emitter]]\nshape "
        "= \"box\"\ncenter = [{}, {}]\nhalf_size = [0.15, 0.075]\nrotate_deg = {}\nmaterial = \"jelly\"\n"
        "particles_per_cell = 9\njelly = {{ youngs_modulus_Pa = 5e5 }}\n[[collider]]\nshape = "
        "\"box\"\ncenter = "
        "[1, 0.6]\nhalf_size = [1.2, 0.1]\nrotate_deg = {}\nboundary = \"separate\"\nfriction = {}\n",
        block.x(), block.y(), -kTilt_deg, -kTilt_deg, friction));
    const auto speed = [&] {
      const FrameStats s = solver->wait_stats();
      return (s.momentum.x() * down.x() + s.momentum.y() * down.y()) / s.mass_kg;
    };
    wait_advance(*solver, 2);
    const double before = speed();
    wait_advance(*solver, 6);
    const double measured = (speed() - before) / 0.3,
                 exact = kGravity * (std::sin(tilt) - friction * std::cos(tilt));
    fmt::print("friction {}: {:.3f} m/s^2, theory {:.3f}\n", friction, measured, exact);
    EXPECT_NEAR(measured, exact, 0.03 * kGravity * std::sin(tilt)) << friction;
  }
}

// Snow between slippery walls is pressed by a plate as in an oedometer. Below theta_c nothing yields; beyond,
// the elastic part stays at 1 - theta_c and all else is plastic. How much the middle was pressed is seen by
// two layers of particles: beside plate and floor half a cell is pressed otherwise. Seen to fail: theta_c and
// theta_s exchanged, where a scene becomes a material.
TEST(Snow, IsPressedAsInAnOedometer) {
  constexpr double kThetaC = 0.02, kHeight_m = 0.5, kSpeed = 0.1;
  const std::unique_ptr<Solver> solver = wait_start(fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [0.25, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = "
      "0.02\n"
      "[walls]\nall = \"slip\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.125, {0}]\nhalf_size = [0.125, "
      "{0}]\n"
      "material = \"snow\"\nparticles_per_cell = 16\nsnow = {{ theta_c = {1}, theta_s = 0.005, poisson_ratio "
      "= 0.3 "
      "}}\n[[collider]]\nshape = \"box\"\ncenter = [0.125, {2}]\nhalf_size = [1, 0.1]\nvelocity = [0, "
      "{3}]\nboundary = \"slip\"\n",
      kHeight_m / 2, kThetaC, kHeight_m + 0.1, -kSpeed));
  const ParticleSnapshot start = solver->wait_snapshot();
  const auto layer = [&](const ParticleSnapshot& s, float y) {
    return mean_of(
        s, [&](size_t i) { return std::abs(start.position[i].y() - y) < 0.02F; },
        [&](size_t i) { return double{s.position[i].y()}; });
  };
  const double distance_m = layer(start, 0.34F) - layer(start, 0.1F);
  for (const double strain : {0.012, 0.06, 0.1}) {
    wait_advance(*solver,
                 static_cast<int>(std::lround(strain * kHeight_m / kSpeed / 0.02)) - solver->frame());
    const ParticleSnapshot s = solver->wait_snapshot();
    const double pressed = 1 - (layer(s, 0.34F) - layer(s, 0.1F)) / distance_m,
                 elastic = std::min(pressed, kThetaC);
    const auto middle = [&](size_t i) { return std::abs(start.position[i].y() - 0.22F) < 0.12F; };
    const double jp = mean_of(s, middle, [&](size_t i) { return double{s.material_scalar[i]}; });
    const double stretch = mean_of(s, middle, [&](size_t i) { return double{s.deformation[4 * i + 3]}; });
    fmt::print("pressed by {:.4f}: Jp {:.4f} (law {:.4f}), elastic stretch {:.4f} (law {:.4f})\n", pressed,
               jp, (1 - pressed) / (1 - elastic), stretch, 1 - elastic);
    EXPECT_NEAR(pressed, strain, 0.2 * strain);
    EXPECT_NEAR(jp, (1 - pressed) / (1 - elastic), 0.002);
    EXPECT_NEAR(stretch, 1 - elastic, 0.001);
  }
}

}  // namespace
}  // namespace coppice::mpm
