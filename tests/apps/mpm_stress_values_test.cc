// Values of stress and strain for output, against what is known of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/mpm/emission.h"
#include "apps/mpm/scene_setup.h"
#include "apps/mpm/solver.h"
#include "apps/mpm/stress_values.h"
#include "apps/run/particle_fields.h"
#include "core/error.h"

namespace coppice::mpm {
namespace {

TEST(StressValues, OfPlainStates) {
  // Tension along one axis, pure shear, and pressure alone.
  const SymmetricMat<3> tension{{7, 0, 0, 0, 0, 0}}, shear{{0, 0, 0, 0, -2, 0}},
      pressed{{-3, 0, 0, -3, 0, -3}};
  EXPECT_FLOAT_EQ(pressure_of<3>(tension), -7.0f / 3);
  EXPECT_FLOAT_EQ(von_mises_of<3>(tension), 7);
  EXPECT_FLOAT_EQ(pressure_of<3>(shear), 0);
  EXPECT_FLOAT_EQ(von_mises_of<3>(shear), 2 * std::sqrt(3.0f));
  EXPECT_FLOAT_EQ(pressure_of<3>(pressed), 3);
  EXPECT_FLOAT_EQ(von_mises_of<3>(pressed), 0);
  const SymmetricMat<2> shear_2d{{0, 2, 0}}, pressed_2d{{-3, 0, -3}};
  EXPECT_FLOAT_EQ(von_mises_of<2>(shear_2d), 2 * std::sqrt(3.0f));
  EXPECT_FLOAT_EQ(pressure_of<2>(pressed_2d), 3);
  EXPECT_FLOAT_EQ(von_mises_of<2>(pressed_2d), 0);
  // In plane strain the third stress is the mean of the two: the formula for three dimensions says the same.
  const SymmetricMat<2> plane{{5, 1, -2}};
  EXPECT_FLOAT_EQ(von_mises_of<2>(plane), von_mises_of<3>({{5, 1, 0, -2, 0, 1.5f}}));
}

TEST(StressValues, StrainKnowsNoRotation) {
  const float angle = 0.7f, c = std::cos(angle), s = std::sin(angle);
  const SymmetricMat<2> turned = green_lagrange<2>({{c, -s, s, c}});
  for (const float e : turned.m) EXPECT_NEAR(e, 0, 1e-6f);
  const SymmetricMat<3> stretched = green_lagrange<3>({{1.1f, 0, 0.2f, 0, 1, 0, 0, 0, 1}});
  const float expected[] = {0.105f, 0, 0.11f, 0, 0, 0.02f};
  for (int k = 0; k < 6; ++k) EXPECT_NEAR(stretched.m[k], expected[k], 1e-6f) << k;
}

// A column of jelly bears the weight above it, and a pool of water has its equation's pressure times J.
TEST(StressValues, OfTheSolverAreItsMaterials) {
  const scene::SceneConfig scene = scene::parse_scene(
      "dim = 2\n[grid]\nresolution = 16\n[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.2]\nhalf_size = "
      "[0.25, 0.2]\nmaterial = \"water\"\nwater = { bulk_modulus_Pa = 1e5, viscosity_Pa_s = 0.0 }\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.75, 0.2]\nhalf_size = [0.1, 0.1]\nvelocity = [0.0, "
      "-1.0]\nmaterial = \"jelly\"\n",
      "two.toml");
  const std::unique_ptr<Solver> solver = Solver::create(Device::cpu(2), scene);
  for (int i = 0; i < 30; ++i) solver->wait_advance(10);
  const ParticleSnapshot s = solver->wait_snapshot_with({.stress = true});
  EXPECT_TRUE(solver->wait_snapshot().stress.empty());
  const std::vector<float> pressure = pressures(s, 2), strain = strains(s, 2);
  ASSERT_EQ(strain.size(), 3 * s.position.size());
  const auto water = Water<float, 2>::from_bulk_modulus(1e5f);
  const auto jelly =
      Jelly<float, 2>::from_young(static_cast<float>(scene.emitters[1].jelly.youngs_modulus_Pa),
                                  static_cast<float>(scene.emitters[1].jelly.poisson_ratio));
  float most = 0;
  for (size_t i = 0; i < s.position.size(); ++i) {
    if (s.emitter[i] == 0) {
      const float p =
          s.volume_ratio[i] * make_group<2>(scene, scene.emitters[0], 1).water.pressure(s.volume_ratio[i]);
      EXPECT_NEAR(pressure[i], p, 1e-2f * std::abs(p) + 1) << water.gamma;
      EXPECT_EQ(strain[3 * i], 0);
      continue;
    }
    const float* f = s.deformation.data() + 4 * i;
    const SmallMat<float, 2> tau = jelly.kirchhoff_stress({{f[0], f[1], f[2], f[3]}}, 1);
    most = std::max(most, std::abs(tau.m[3]));
    const float tolerance = 1e-3f * (std::abs(tau.m[0]) + std::abs(tau.m[3])) + 1;
    EXPECT_NEAR(s.stress[3 * i], tau.m[0], tolerance);
    EXPECT_NEAR(s.stress[3 * i + 1], tau.m[1], tolerance);
    EXPECT_NEAR(s.stress[3 * i + 2], tau.m[3], tolerance);
  }
  EXPECT_GT(most, 100) << "the jelly bears nothing";
}

// Snow's stiffness is exp(hardening (1 - J)) times the material's, J being its plastic volume ratio.
TEST(StiffnessSpread, IsDrawnEvenlyByTheSeed) {
  const auto stiffnesses = [](const std::string& keys) {
    const scene::SceneConfig scene = scene::parse_scene(
        "[grid]\nresolution = 32\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.2\n"
        "material = \"snow\"\n" +
            keys,
        "snow.toml");
    const ParticleSnapshot s = Solver::create(Device::cpu(2), scene)->wait_snapshot();
    std::vector<double> all;
    for (const float j : s.material_scalar)
      all.push_back(std::exp(scene.emitters[0].snow.hardening * (1 - j)));
    return all;
  };
  for (const double k : stiffnesses("")) ASSERT_EQ(k, 1);
  const std::vector<double> spread = stiffnesses("stiffness_spread = 0.4\n");
  const auto n = static_cast<double>(spread.size());
  double mean = 0, square = 0;
  for (const double k : spread) {
    EXPECT_GE(k, 0.6 - 1e-5);
    EXPECT_LE(k, 1.4 + 1e-5);
    mean += k / n, square += (k - 1) * (k - 1) / n;
  }
  ASSERT_GT(n, 5000);
  EXPECT_NEAR(mean, 1, 4 * 0.4 / std::sqrt(3 * n)) << "four standard errors";
  EXPECT_NEAR(square, 0.16 / 3, 0.05 * 0.16 / 3);
  EXPECT_EQ(spread, stiffnesses("stiffness_spread = 0.4\n"));
  const std::vector<double> other = stiffnesses("stiffness_spread = 0.4\nseed = 9\n");
  EXPECT_FALSE(std::equal(spread.begin(), spread.begin() + 100, other.begin())) << "ids alone draw it";
  EXPECT_THROW(stiffnesses("stiffness_spread = 0.4\nsnow = { hardening = 0.0 }\n"), Error);
}

// A cell that is full of an emitter's particles is at rest, whatever their masses were scaled by: a pulse of
// pressure would follow.
TEST(ExactMass, WaterRestsWhereItsCellsAreFull) {
  const scene::SceneConfig scene = scene::parse_scene(
      "dim = 2\n[grid]\nresolution = 16\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5]\nradius = 0.1\n"
      "material = \"water\"\n",
      "ball.toml");
  const double factor = emit_particles(scene).volume_factor[0];
  ASSERT_GT(std::abs(factor - 1), 0.01) << "choose another radius: it tests nothing";
  const Group<2> group = make_group<2>(scene, scene.emitters[0], factor);
  EXPECT_NEAR(group.per_density * group.mass * 4, 1, 1e-6);
  EXPECT_NEAR(group.mass / group.volume, group.density, 1e-3);
}

}  // namespace
}  // namespace coppice::mpm
