// Resting water.
#include <cmath>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

const double kBulk_Pa = std::getenv("BULK") ? std::atof(std::getenv("BULK")) : 2e4; constexpr double kGamma = 7, kDensity = 1000, kGravity = 9.81, kDepth_m = 0.5;

std::string pool(int cells_per_m) {
  return fmt::format(
      "dim = 2\ngravity = [0, {}]\n[domain]\nmin = [0, 0]\nmax = [0.25, 1]\n[grid]\nresolution = {}\n"
      "[time]\nframe_dt_s = {}\nmax_dt_s = 1\n[walls]\nall = \"slip\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.125, 0.25]\nhalf_size = [0.125, 0.25]\nmaterial = \"water\"\nparticles_per_cell = {}\n"
      "water = {{ bulk_modulus_Pa = {}, gamma = {}, density_kg_m3 = {} }}\n",
      -kGravity, cells_per_m, 0.02, std::getenv("PPC") ? std::atoi(std::getenv("PPC")) : 4, kBulk_Pa, kGamma, kDensity);
}

double pressure_error(int cells_per_m) {
  const std::unique_ptr<Solver> solver = wait_start(pool(cells_per_m));
  const ParticleSnapshot start = solver->wait_snapshot();
  constexpr int kBins = 8, kFrames = 150, kAverage = 50;
  std::vector<double> p(kBins), n(kBins), mean_y(kBins), p2(kBins);
  for (int f = 0; f < kFrames; ++f) {
    solver->wait_advance_frame();
    const ParticleSnapshot s = solver->wait_snapshot();
    if (f % 10 == 0) { const auto st = solver->wait_stats(); fmt::print("t {:.2f} KE {:.4g} vmax {:.3g} y {:.4f}\n", st.time_s, st.kinetic_J, st.max_speed_m_s, mean_position(s).y()); }
    if (f < kFrames - kAverage) continue;
    for (size_t i = 0; i < s.position.size(); ++i) {
      const int b = std::min(kBins - 1, static_cast<int>(s.position[i].y() / kDepth_m * kBins));
      const double j = s.volume_ratio[i];
      const double q = std::max(0.0, kBulk_Pa / kGamma * (std::pow(j, -kGamma) - 1)); p[b] += q, p2[b] += q*q;
      mean_y[b] += s.position[i].y();
      n[b] += 1;
    }
  }
  double e2 = 0, r2 = 0;
  for (int b = 0; b < kBins; ++b) {
    p[b] /= n[b], mean_y[b] /= n[b];
    const double exact = kDensity * kGravity * (kDepth_m - mean_y[b]);
    fmt::print("bin {}: p {:.1f} exact {:.1f} sd {:.1f} n {}\n", b, p[b], exact, std::sqrt(p2[b]/n[b]-p[b]*p[b]), n[b]/kAverage);
    e2 += (p[b] - exact) * (p[b] - exact), r2 += exact * exact;
  }
  return std::sqrt(e2 / r2);
}

TEST(RestingWater, HasHydrostaticPressure) {
  for (int level = 0; level < 3; ++level) fmt::print("L2 {:.4f}\n", pressure_error(16 << level));
}

}  // namespace
}  // namespace coppice::mpm
