// Forces of the material on colliders: weights, torques, and the balance of momentum.
#include <cmath>
#include <string>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kGravity = 9.81;

// A block of jelly rests on a box, `off` to the right of its middle.
std::string block_on_box(double off, const char* more = "") {
  return fmt::format(
      "dim = 2\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.08\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [{}, 0.505]\nhalf_size = [0.1, 0.1]\nmaterial = \"jelly\"\n"
      "jelly = {{ youngs_modulus_Pa = 1e5 }}\n[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.3]\n"
      "half_size = [0.4, 0.105]\nfriction = 0.5\n{}",
      0.5 + off, more);
}

// The mean over the block's swings, which nothing else damps.
ColliderForce mean_force(Solver& solver, int frames) {
  ColliderForce mean;
  for (int frame = 0; frame < frames; ++frame) {
    solver.wait_advance_frame();
    const ColliderForce f = solver.wait_stats().colliders[0];
    mean.force_N += f.force_N / frames, mean.torque_N_m += f.torque_N_m / frames;
  }
  return mean;
}

TEST(ColliderForce, IsTheWeightOfWhatRestsOnIt) {
  for (const double off : {0.0, 0.15}) {
    const auto solver = wait_start(block_on_box(off));
    const FrameStats start = solver->wait_stats();
    ASSERT_EQ(start.colliders.size(), 1u);
    EXPECT_EQ(start.colliders[0].force_N.norm(), 0);
    const double weight = start.mass_kg * kGravity;
    const ColliderForce mean = mean_force(*solver, 15);
    fmt::print("force {:.3f} {:.3f} N, weight {:.3f} N; torque {:.3f} N m, {:.3f}\n", mean.force_N.x(),
               mean.force_N.y(), weight, mean.torque_N_m.z(), -weight * off);
    EXPECT_NEAR(mean.force_N.y(), -weight, 0.02 * weight);
    EXPECT_NEAR(mean.force_N.x(), 0, 0.02 * weight);
    // The particles are placed at random in their cells: the middle of mass is within a tenth of a cell.
    EXPECT_NEAR(mean.torque_N_m.z(), -weight * off, 0.02 * weight * 0.15 + 0.1 / 64 * weight);
  }
}

// A block is thrown at a collider: what it loses the collider gets, and nobody else.
void expect_balance(const std::string& collider) {
  SCOPED_TRACE(collider);
  const auto solver = wait_start(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = "
      "0.01\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.55]\nhalf_size = [0.08, 0.08]\nvelocity = [3, 0]\n"
      "material = \"jelly\"\njelly = { youngs_modulus_Pa = 1e5 }\n[[collider]]\nfriction = 0.3\n" +
      collider);
  const Vec3d before = solver->wait_stats().momentum;
  Vec3d given = Vec3d::Zero();
  FrameStats s;
  for (int frame = 0; frame < 12; ++frame) {
    solver->wait_advance_frame();
    s = solver->wait_stats();
    given += 0.01 * s.colliders[0].force_N;
  }
  fmt::print("the block loses {:.4f} {:.4f}, the collider gets {:.4f} {:.4f} N s\n",
             before.x() - s.momentum.x(), before.y() - s.momentum.y(), given.x(), given.y());
  EXPECT_GT(given.x(), 0.3 * before.x());
  EXPECT_LE((before - s.momentum - given).norm(), 1e-4 * before.norm());
}

TEST(ColliderForce, IsWhatAThrownBlockLoses) {
  expect_balance("shape = \"sphere\"\ncenter = [0.55, 0.5]\nradius = 0.12\n");
  expect_balance(
      "shape = \"box\"\ncenter = [0.5, 0.5]\nhalf_size = [0.003, 0.3]\n");  // met by particles alone
  expect_balance("shape = \"plane\"\ncenter = [0.5, 0.5]\nnormal = [-3, 1]\n");
  expect_balance(
      "shape = \"capsule\"\ncenter = [0.5, 0.5]\nradius = 0.05\nhalf_height = 0.1\nrotate_deg = 20\n");
}

// Whole numbers are added: the order does not matter.
TEST(ColliderForce, DoesNotDependOnTheNumberOfThreads) {
  const scene::SceneConfig scene = parse_physics_scene(block_on_box(0.1));
  const auto one = wait_start(scene, 1), four = wait_start(scene, 4);
  for (int frame = 0; frame < 3; ++frame) {
    one->wait_advance_frame(), four->wait_advance_frame();
    const ColliderForce a = one->wait_stats().colliders[0], b = four->wait_stats().colliders[0];
    EXPECT_EQ(a.force_N, b.force_N);
    EXPECT_EQ(a.torque_N_m, b.torque_N_m);
    EXPECT_NE(a.force_N.y(), 0);
  }
}

TEST(ColliderForce, IsTheSameOnAnEmulatedGpu) {
  const std::string text =
      "[domain]\nmax = [1, 1, 1]\n[grid]\nresolution = 8\n[time]\nframe_dt_s = 0.01\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [0.55, 0.55, 0.5]\nhalf_size = [0.15, 0.15, 0.15]\nvelocity = [0, -2, 0]\n"
      "material = \"jelly\"\n[[collider]]\nshape = \"capsule\"\ncenter = [0.5, 0.3, 0.5]\nradius = 0.1\n"
      "half_height = 0.2\nrotate_deg = [0, 0, 80]\nfriction = 0.3\nangular_velocity_rad_s = [1, 0, 0]\n";
  const std::array<ColliderForce, 2> forces = wait_forces_on_cpu_and_simt(text);
  EXPECT_LT(forces[0].force_N.y(), 0);
  EXPECT_NEAR((forces[0].force_N - forces[1].force_N).norm(), 0, 1e-3 * forces[0].force_N.norm());
  EXPECT_NEAR((forces[0].torque_N_m - forces[1].torque_N_m).norm(), 0, 1e-3 * forces[0].force_N.norm());
}

TEST(ColliderForce, IsThereOnlyWhereThereAreColliders) {
  EXPECT_TRUE(wait_start("dim = 2\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5]\nradius = 0.1\n"
                         "material = \"sand\"\n")
                  ->wait_stats()
                  .colliders.empty());
}

}  // namespace
}  // namespace coppice::mpm
