// Particles packed for drawing are those that the solver has, in 2-D and 3-D.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "apps/mpm/solver.h"
#include "apps/run/particle_fields.h"
#include "core/error.h"
#include "tests/apps/run_outputs.h"
#include "tests/sparse/test_devices.h"

namespace coppice::mpm {
namespace {

void expect_what_the_solver_has(const std::string& scene_text, size_t dim) {
  const std::unique_ptr<Solver> solver =
      Solver::create(Device::cpu(2), scene::parse_scene(scene_text, "tiny.toml"));
  solver->wait_advance(20);
  const ParticleSnapshot all = solver->wait_snapshot_with({.stress = true});
  ASSERT_GT(all.position.size(), 50u);
  const std::vector<float> pressure = pressures(all, static_cast<int>(dim)),
                           von_mises = von_mises_stresses(all, static_cast<int>(dim));
  EXPECT_GT(*std::ranges::max_element(von_mises), 0.0f) << "nothing has a stress to compare";
  std::map<std::array<float, 3>, size_t> number;
  for (size_t i = 0; i < all.position.size(); ++i)
    number[{all.position[i].x(), all.position[i].y(), all.position[i].z()}] = i;
  for (const PointValue value : {PointValue::kMaterial, PointValue::kEmitter, PointValue::kSpeed,
                                 PointValue::kVolumeRatio, PointValue::kPressure, PointValue::kVonMises}) {
    std::vector<render::PackedPoint> points;
    solver->wait_pack(value, points);
    ASSERT_EQ(points.size(), all.position.size());
    for (const render::PackedPoint& p : points) {
      const auto found = number.find({p.position.x(), p.position.y(), p.position.z()});
      ASSERT_NE(found, number.end());
      if (dim == 2) {
        EXPECT_EQ(p.position.z(), 0.0f);
      }
      const size_t i = found->second;
      const float expected = value == PointValue::kMaterial   ? static_cast<float>(MaterialKind::kSnow)
                             : value == PointValue::kEmitter  ? all.emitter[i]
                             : value == PointValue::kSpeed    ? all.velocity[i].norm()
                             : value == PointValue::kPressure ? pressure[i]
                             : value == PointValue::kVonMises ? von_mises[i]
                                                              : all.volume_ratio[i];
      EXPECT_FLOAT_EQ(p.value, expected);
    }
  }
}

TEST(PointPacking, IsWhatTheSolverHasIn3D) {
  const std::string
      two = "shape = \"sphere\"\ncenter = [0.3, 0.5, 0.5]\nradius = 0.12\nmaterial = \"snow\"\n",
      more =
          "velocity = [1.0, 2.0, 2.0]\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.7, 0.5, 0.5]\n"
          "radius = 0.1\nmaterial = \"snow\"\n";
  expect_what_the_solver_has(tiny_scene(two, more), 3);
}

TEST(PointPacking, IsWhatTheSolverHasIn2D) {
  expect_what_the_solver_has(
      "dim = 2\n[grid]\nresolution = 32\n[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.5]\nhalf_size = "
      "[0.2, 0.1]\n"
      "velocity = [3.0, 4.0]\nmaterial = \"snow\"\n",
      2);
}

// A solver's grid after some steps, as a field of 8^3 leaves, against what is written to volume
// files and what particles have.
class GridField : public DeviceTest {};

TEST_P(GridField, HasTheDensityOfVolumeFilesAndTheSpeedOfParticles) {
  const std::unique_ptr<Solver> solver = Solver::create(
      device, scene::parse_scene(tiny_scene("shape = \"sphere\"\ncenter = [0.3, 0.5, 0.5]\nradius = 0.12\n"
                                            "material = \"snow\"\nvelocity = [1.0, 2.0, 2.0]\n"),
                                 "tiny.toml"));
  for (int batch = 0; batch < 2; ++batch) {
    solver->wait_advance(is_emulated() ? 1 : 20);
    const DensityBlocks density = solver->wait_density();
    const Field<float> field = solver->wait_grid_field(GridValue::kDensity);
    ASSERT_GT(density.values.size(), 64u);
    double sum = 0;
    const size_t stride = is_emulated() ? 5 : 1;
    for (size_t b = 0; b < density.origins.size() / 3; b += stride) {
      const int32_t* const o = &density.origins[3 * b];
      const std::vector<float> cells = wait_read(field, {o[0], o[1], o[2]}, {o[0] + 4, o[1] + 4, o[2] + 4});
      for (size_t n = 0; n < 64; ++n) EXPECT_EQ(cells[n], density.values[64 * b + n]);
      sum += std::accumulate(cells.begin(), cells.end(), 0.0);
    }
    EXPECT_GT(sum, 0);
  }
  // Snow that flies as a whole moves with the speed that it was given; the same cells have mass and speed.
  const DensityBlocks density = solver->wait_density();
  const Field<float> speed = solver->wait_grid_field(GridValue::kSpeed);
  int moving = 0;
  for (size_t b = 0; b < density.origins.size() / 3; ++b) {
    const int32_t* const o = &density.origins[3 * b];
    const std::vector<float> cells = wait_read(speed, {o[0], o[1], o[2]}, {o[0] + 4, o[1] + 4, o[2] + 4});
    for (size_t n = 0; n < 64; ++n) {
      EXPECT_EQ(cells[n] > 0, density.values[64 * b + n] > 0);
      if (density.values[64 * b + n] < 100) continue;
      EXPECT_NEAR(cells[n], 3, 0.5);
      ++moving;
    }
  }
  EXPECT_GT(moving, 5);
}

// A block of water in a corner of the domain is full there, also where it touches the walls; what is no water
// plays no part, and a sheet of one layer, which has no surface, encloses nothing.
TEST_P(GridField, IsAsFullOfAMaterialAsItWasSampled) {
  const std::unique_ptr<Solver> solver = Solver::create(
      device,
      scene::parse_scene(
          tiny_scene(
              "shape = \"box\"\ncenter = [0.15, 0.15, 0.15]\nhalf_size = [0.15, 0.15, 0.15]\n"
              "material = \"water\"\n",
              "[[emitter]]\nshape = \"box\"\ncenter = [0.75, 0.75, 0.75]\nhalf_size = [0.1, 0.012, 0.1]\n"
              "material = \"water\"\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.75, 0.25, 0.25]\n"
              "radius = 0.1\nmaterial = \"snow\"\n"),
          "tiny.toml"));
  std::vector<uint8_t> enclosed;
  std::vector<render::PackedPoint> points;
  const auto full_at = [&](const Field<float>& field, const Vec3f& world) {
    const Vec3i node = ((world - solver->grid_placement().origin_m) * 16).array().floor().cast<int>();
    return wait_read(field, {node.x(), node.y(), node.z()});
  };
  for (int batch = 0; batch < 2; ++batch) {
    solver->wait_advance(is_emulated() ? 1 : 4);
    const Field<float> field = solver->wait_body_field(MaterialKind::kWater, 0.45f, enclosed);
    for (const Vec3f& inside :
         {Vec3f(0.125f, 0.125f, 0.125f), Vec3f(0, 0.125f, 0.125f), Vec3f(0.125f, 0, 0), Vec3f(0, 0, 0)})
      EXPECT_NEAR(full_at(field, inside), 1, 0.35f) << inside.transpose();
    for (const Vec3f& outside :
         {Vec3f(0.5f, 0.5f, 0.5f), Vec3f(0.75f, 0.25f, 0.25f), Vec3f(-0.0625f, 0.125f, 0.125f)})
      EXPECT_EQ(full_at(field, outside), 0) << outside.transpose();
    solver->wait_pack(PointValue::kEmitter, points);
    ASSERT_EQ(enclosed.size(), points.size());
    std::array<int, 3> n{}, in{};
    for (size_t i = 0; i < points.size(); ++i)
      ++n.at(static_cast<size_t>(points[i].value)),
          in.at(static_cast<size_t>(points[i].value)) += enclosed[i];
    EXPECT_GT(in[0], 0.95 * n[0]);
    EXPECT_GT(n[1], 0);
    EXPECT_EQ(in[1], 0);
    EXPECT_EQ(in[2], 0);
    // Another value of the grid comes between.
    EXPECT_GT(full_at(solver->wait_grid_field(GridValue::kDensity), Vec3f(0.75f, 0.25f, 0.25f)), 100);
  }
}

TEST(GridFieldIn2D, IsRefused) {
  const std::unique_ptr<Solver> solver = Solver::create(
      Device::cpu(2),
      scene::parse_scene("dim = 2\n[grid]\nresolution = 32\n[[emitter]]\nshape = \"box\"\ncenter = "
                         "[0.5, 0.5]\nhalf_size = [0.2, 0.1]\nmaterial = \"snow\"\n",
                         "tiny.toml"));
  EXPECT_THROW(solver->wait_grid_field(GridValue::kDensity), Error);
  std::vector<uint8_t> enclosed;
  EXPECT_THROW(solver->wait_body_field(MaterialKind::kWater, 0.3f, enclosed), Error);
}

INSTANTIATE_TEST_SUITE_P(Mpm, GridField, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice::mpm
