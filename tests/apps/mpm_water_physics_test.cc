// Resting water: the pressure is the weight above, and walls hold it.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kBulk_Pa = 2e5, kGamma = 7, kDensity = 1000, kGravity = 9.81, kDepth_m = 0.5, kWidth_m = 0.25;
constexpr int kLayers = 8;

double acoustic_period_s() { return 4 * kDepth_m / std::sqrt(kBulk_Pa / kDensity); }

std::string pool(int cells_per_m, double frame_dt_s) {
  return fmt::format(
      "dim = 2\ngravity = [0, {}]\n[domain]\nmin = [0, 0]\nmax = [{}, 1]\n[grid]\nresolution = {}\n"
      "[time]\nframe_dt_s = {}\nmax_dt_s = 1\n[walls]\nall = \"slip\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [{}, {}]\nhalf_size = [{}, {}]\nmaterial = \"water\"\nparticles_per_cell = {}\n"
      "water = {{ bulk_modulus_Pa = {}, gamma = {}, density_kg_m3 = {} }}\n",
      -kGravity, kWidth_m, cells_per_m, frame_dt_s, kWidth_m / 2, kDepth_m / 2, kWidth_m / 2, kDepth_m / 2,  std::getenv("PPC") ? std::atoi(std::getenv("PPC")) : 16, kBulk_Pa,
      kGamma, kDensity);
}

// The solver's: water without tension.
double pressure_Pa(double j) { return std::max(0.0, kBulk_Pa / kGamma * (std::pow(j, -kGamma) - 1)); }

// Adds each layer's mean pressure; a layer is an equal share of the mass, counted from below.
void add_layers(const ParticleSnapshot& s, std::vector<double>& pressure) {
  std::vector<size_t> order(s.position.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return s.position[a].y() < s.position[b].y(); });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const size_t layer = rank * kLayers / order.size();
    pressure[layer] += pressure_Pa(s.volume_ratio[order[rank]]) * kLayers / static_cast<double>(order.size());
  }
}

double pressure_error(int cells_per_m) {
  constexpr int kPeriodFrames = 8; const int kSettle = std::getenv("SETTLE") ? std::atoi(std::getenv("SETTLE")) : 10, kAverage = std::getenv("AVG") ? std::atoi(std::getenv("AVG")) : 10;  // periods
  const std::unique_ptr<Solver> solver = wait_start(pool(cells_per_m, acoustic_period_s() / kPeriodFrames));
  wait_advance(*solver, kSettle * kPeriodFrames);
  std::vector<double> pressure(kLayers);
  for (int frame = 0; frame < kAverage * kPeriodFrames; ++frame) {
    solver->wait_advance_frame();
    add_layers(solver->wait_snapshot(), pressure);
  }
  double error2 = 0, exact2 = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    const double exact = kDensity * kGravity * kDepth_m * (1 - (layer + 0.5) / kLayers);
    const double mean = pressure[layer] / (kAverage * kPeriodFrames);
    fmt::print("layer {}: {:.0f} Pa, weight above {:.0f} Pa\n", layer, mean, exact);
    error2 += (mean - exact) * (mean - exact), exact2 += exact * exact;
  }
  return std::sqrt(error2 / exact2);
}

TEST(RestingWater, HasHydrostaticPressure) {
  for (int level = 0; level < 3; ++level) fmt::print("L2 {:.4f}\n", pressure_error(16 << level));
}

}  // namespace
}  // namespace coppice::mpm
