// Water keeps its volume: in free flight, in layers of two densities, and with sand.
//
// Seen to fail when the code was broken: J drawn to the density at a free surface (a ball puffs up by a
// tenth), masses compared instead of volumes (light water takes a quarter more room).
#include <cmath>
#include <string>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kVolumeError = 0.03;

// Volume of a round body that is as dense everywhere, by the second moment of its particles, relative to that
// at the start.
double spread(const ParticleSnapshot& s, int dim) {
  const Vec3d middle = mean_position(s);
  const double moment = mean_of(
      s, [](size_t) { return true; },
      [&](size_t i) { return (s.position[i].cast<double>() - middle).squaredNorm(); });
  return std::pow(moment, 0.5 * dim);
}

double mean_volume_ratio(const ParticleSnapshot& s) {
  return mean_of(
      s, [](size_t) { return true; }, [&](size_t i) { return static_cast<double>(s.volume_ratio[i]); });
}

void expect_ball_keeps_its_volume(int dim, int resolution) {
  const bool solid = dim == 3;
  const auto solver = wait_start(parse_physics_scene(fmt::format(
      "dim = {}\ngravity = {}\n[domain]\nmax = {}\n[grid]\nresolution = {}\n[time]\nframe_dt_s = 0.5\n"
      "[[emitter]]\nshape = \"sphere\"\ncenter = {}\nradius = 0.2\nmaterial = \"water\"\nvelocity = {}\n",
      dim, solid ? "[0, 0, 0]" : "[0, 0]", solid ? "[1, 1, 1]" : "[1, 1]", resolution,
      solid ? "[0.4, 0.5, 0.5]" : "[0.4, 0.5]", solid ? "[0.1, 0, 0]" : "[0.1, 0]")));
  const double start = spread(solver->wait_snapshot(), dim);
  for (int frame = 1; frame <= 4; ++frame) {
    solver->wait_advance_frame();
    const ParticleSnapshot s = solver->wait_snapshot();
    const double volume = spread(s, dim) / start, ratio = mean_volume_ratio(s);
    fmt::print("{}-D, {} s: volume {:.4f} of that at the start, J {:.4f}\n", dim, 0.5 * frame, volume, ratio);
    EXPECT_NEAR(volume, 1, kVolumeError) << frame;
    EXPECT_NEAR(ratio, 1, kVolumeError) << frame;
  }
}
TEST(FlyingWater, KeepsItsVolume) { expect_ball_keeps_its_volume(2, 64); }
TEST(FlyingWater, KeepsItsVolumeInThreeDimensions) { expect_ball_keeps_its_volume(3, 32); }

// Layers of 0.16 m in a tank of 0.32 m by 0.64 m, the first below. Each has half of the water.
std::string layers(const char* below, const char* above, double frame_dt_s) {
  const auto layer = [](double y, const char* material) {
    return fmt::format("[[emitter]]\nshape = \"box\"\ncenter = [0.16, {}]\nhalf_size = [0.16, 0.08]\n{}", y,
                       material);
  };
  return fmt::format(
      "dim = 2\n[domain]\nmax = [0.32, 0.64]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = {}\n[walls]\nall "
      "= "
      "\"slip\"\n{}{}",
      frame_dt_s, layer(0.08, below), layer(0.24, above));
}
constexpr const char* kHeavy =
    "material = \"water\"\nwater = { density_kg_m3 = 1000, bulk_modulus_Pa = 1e5 }\n";
constexpr const char* kLight =
    "material = \"water\"\nwater = { density_kg_m3 = 800, bulk_modulus_Pa = 1e5 }\n";
constexpr const char* kSand = "material = \"sand\"\nsand = { density_kg_m3 = 1600 }\n";

double mean_height(const ParticleSnapshot& s, uint32_t emitter) {
  return mean_of(
      s, [&](size_t i) { return s.emitter[i] == emitter; },
      [&](size_t i) { return static_cast<double>(s.position[i].y()); });
}

// The mean of J of one emitter's particles.
double mean_volume_ratio(const ParticleSnapshot& s, uint32_t emitter) {
  return mean_of(
      s, [&](size_t i) { return s.emitter[i] == emitter; },
      [&](size_t i) { return static_cast<double>(s.volume_ratio[i]); });
}

// All particles have one volume, so that the depth is twice the mean height. The layers mix a little at their
// border: of the 0.16 m between their middles, 0.14 are left at least.
void expect_layers_are_kept(const char* below, const char* above) {
  const auto solver = wait_start(parse_physics_scene(layers(below, above, 2)));
  for (int frame = 1; frame <= 3; ++frame) {
    solver->wait_advance_frame();
    const ParticleSnapshot s = solver->wait_snapshot();
    const double low = mean_height(s, 0), high = mean_height(s, 1), depth = low + high;
    fmt::print("{} s: depth {:.4f} m of 0.32 m, middles at {:.4f} m and {:.4f} m, J {:.4f} and {:.4f}\n",
               2 * frame, depth, low, high, mean_volume_ratio(s, 0), mean_volume_ratio(s, 1));
    EXPECT_NEAR(depth, 0.32, kVolumeError * 0.32) << frame;
    EXPECT_NEAR(mean_volume_ratio(s, 0), 1, kVolumeError) << frame;
    EXPECT_NEAR(mean_volume_ratio(s, 1), 1, kVolumeError) << frame;
    EXPECT_GE(high - low, 0.14) << frame;
  }
}
TEST(LayeredWater, KeepsTheVolumeOfEachLayer) { expect_layers_are_kept(kHeavy, kLight); }
TEST(LayeredWater, KeepsItsVolumeAboveSand) { expect_layers_are_kept(kSand, kHeavy); }

TEST(LayeredWater, OverturnsWhereTheHeavyLayerIsAbove) {
  const auto solver = wait_start(parse_physics_scene(layers(kLight, kHeavy, 2)));
  wait_advance(*solver, 5);
  const ParticleSnapshot s = solver->wait_snapshot();
  const double light = mean_height(s, 0), heavy = mean_height(s, 1), all = 0.5 * (light + heavy);
  fmt::print("after 10 s the light water is at {:.4f} m, the heavy at {:.4f} m, all at {:.4f} m\n", light,
             heavy, all);
  EXPECT_GT(light, heavy + 0.06);  // they mix on the way
  EXPECT_NEAR(all, 0.16, kVolumeError * 0.16);
}

}  // namespace
}  // namespace coppice::mpm
