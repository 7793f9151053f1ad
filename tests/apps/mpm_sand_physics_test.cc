// Dry sand: slopes and collapsing columns against the friction angle.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kGravity = 9.81, kDegree = std::numbers::pi / 180;

// A layer of sand 0.12 m deep and 2 m long on a rough floor, in axes turned with the slope.
std::string slope(double slope_deg, double friction_deg, int cells_per_m) {
  return fmt::format(
      "dim = 2\ngravity = [{}, {}]\n[domain]\nmin = [0, 0]\nmax = [2.5, 0.5]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = 0.02\n"
      "[walls]\nall = \"separate\"\ny_min = \"stick\"\n[[emitter]]\nshape = \"box\"\ncenter = [1, 0.06]\nhalf_size = [1, 0.06]\n"
      "material = \"sand\"\nparticles_per_cell = 9\nsand = {{ youngs_modulus_Pa = 1e6, friction_angle_deg = {} }}\n",
      kGravity * std::sin(slope_deg * kDegree), -kGravity * std::cos(slope_deg * kDegree), cells_per_m * 5 / 2, friction_deg);
}

void explore_slope(double slope_deg, double friction_deg, int cells) {
  const std::unique_ptr<Solver> solver = wait_start(slope(slope_deg, friction_deg, cells));
  const ParticleSnapshot start = solver->wait_snapshot();
  double v1 = 0;
  for (int f = 1; f <= 20; ++f) {
    solver->wait_advance_frame();
    if (f % 5) continue;
    const ParticleSnapshot s = solver->wait_snapshot();
    const auto middle = [&](size_t i) { return std::abs(start.position[i].x() - 1.0) < 0.2 && start.position[i].y() > 0.06; };
    const Vec3d v = mean_of(s, middle, [&](size_t i) -> Vec3d { return s.velocity[i].cast<double>(); });
    fmt::print("slope {} phi {} t {:.2f} v {:.4f} {:.4f} a {:.3f} expected sin {:.3f} tan {:.3f}\n", slope_deg, friction_deg, f * 0.02, v.x(), v.y(), (v.x() - v1) / 0.1,
               kGravity * (std::sin(slope_deg * kDegree) - std::cos(slope_deg * kDegree) * std::sin(friction_deg * kDegree)),
               kGravity * (std::sin(slope_deg * kDegree) - std::cos(slope_deg * kDegree) * std::tan(friction_deg * kDegree)));
    v1 = v.x();
  }
}

TEST(Sand, Slope) {
  for (int cells : {32, 64}) {
    explore_slope(30, 20, cells);
    explore_slope(40, 30, cells);
    explore_slope(20, 30, cells);
    explore_slope(25, 30, cells);
    explore_slope(28, 30, cells);
    explore_slope(30, 40, cells);
  }
}

std::string column(double friction_deg, double width, double height, int cells_per_m) {
  return fmt::format(
      "dim = 2\n[domain]\nmin = [0, 0]\nmax = [1.5, 0.5]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = 0.05\n"
      "[walls]\nall = \"slip\"\ny_min = \"stick\"\n[[emitter]]\nshape = \"box\"\ncenter = [{}, {}]\nhalf_size = [{}, {}]\n"
      "material = \"sand\"\nparticles_per_cell = 9\nsand = {{ youngs_modulus_Pa = 1e6, friction_angle_deg = {} }}\n",
      cells_per_m * 3 / 2, width / 2, height / 2, width / 2, height / 2, friction_deg);
}

void explore_column(double friction_deg, double width, double height, int cells) {
  const scene::SceneConfig scene = parse_physics_scene(column(friction_deg, width, height, cells));
  const std::unique_ptr<Solver> solver = wait_start(scene);
  const ParticleSnapshot start = solver->wait_snapshot();
  for (int f = 1; f <= 40; ++f) {
    solver->wait_advance_frame();
    if (f % 10) continue;
    const ParticleSnapshot s = solver->wait_snapshot();
    // surface by column
    const double dx = scene.dx_m();
    std::vector<double> top(static_cast<size_t>(1.5 / dx) + 1);
    std::vector<double> xs;
    for (const Vec3f& p : s.position) {
      auto& t = top[static_cast<size_t>(p.x() / dx)];
      t = std::max(t, static_cast<double>(p.y()));
      xs.push_back(p.x());
    }
    std::sort(xs.begin(), xs.end());
    // fit between 20 % and 80 % of final height
    const double hmax = *std::max_element(top.begin(), top.end());
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t c = 0; c < top.size(); ++c) {
      if (top[c] < 0.2 * hmax || top[c] > 0.8 * hmax) continue;
      const double x = (c + .5) * dx;
      n++, sx += x, sy += top[c], sxx += x * x, sxy += x * top[c];
    }
    const double k = -(n * sxy - sx * sy) / (n * sxx - sx * sx);
    const double front = xs[static_cast<size_t>(xs.size() * 0.995)];
    fmt::print("phi {} a {:.2f} t {:.2f}: h {:.3f} front {:.3f} runout/(a) {:.3f} slope {:.2f} deg (n {}) atan sin {:.1f} KE {:.3g}\n", friction_deg, height / width, f * 0.05, hmax, front,
               (front - width) / height, std::atan(k) / kDegree, n, std::atan(std::sin(friction_deg * kDegree)) / kDegree, solver->wait_stats().kinetic_J);
  }
}

TEST(Sand, Column) {
  for (double phi : {20., 25., 30., 35., 40.}) explore_column(phi, 0.4, 0.2, 64);
  for (double phi : {20., 30., 40.}) explore_column(phi, 0.3, 0.3, 64);
  for (double phi : {20., 30., 40.}) explore_column(phi, 0.4, 0.2, 128);
}

}  // namespace
}  // namespace coppice::mpm
