// Forces of the material on colliders: weights, torques, and the balance of momentum.
#include <cmath>
#include <string>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kGravity = 9.81;

// A block of jelly rests on a box, or a plate, `off` to the right of its middle.
std::string block_on_box(double off, const char* more = "", double half_height = 0.105) {
  return fmt::format(
      "dim = 2\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.08\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [{}, 0.505]\nhalf_size = [0.1, 0.1]\nmaterial = \"jelly\"\n"
      "jelly = {{ youngs_modulus_Pa = 1e5 }}\n[[collider]]\nshape = \"box\"\ncenter = [0.5, {}]\n"
      "half_size = [0.4, {}]\nfriction = 0.5\n{}",
      0.5 + off, 0.405 - half_height, half_height, more);
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
  // The last one is a plate of a cell, which particles alone meet.
  for (const auto& [off, half_height] : {std::pair{0.0, 0.105}, {0.15, 0.105}, {0.15, 0.5 / 64}}) {
    const auto solver = wait_start(block_on_box(off, "", half_height));
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

// A block is thrown at a collider around (0.55, 0.5) or (0.5, 0.5): what it loses of both momenta the
// collider gets, and nobody else.
struct Throw {
  std::string collider;  // its keys
  double speed_m_s = 3;
  std::string solver;
  double turn_bound = 1e-5;  // relative to the momentum at the domain's middle
};
void expect_balance(const Throw& hit) {
  SCOPED_TRACE(hit.collider + hit.solver);
  const double frame_s = 0.03 / hit.speed_m_s;
  const auto solver = wait_start(fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = {}\n"
      "{}[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.55]\nhalf_size = [0.08, 0.08]\nvelocity = [{}, {}]\n"
      "material = \"jelly\"\njelly = {{ youngs_modulus_Pa = 1e5 }}\n[[collider]]\n{}",
      frame_s, hit.solver, hit.speed_m_s, -0.3 * hit.speed_m_s, hit.collider));
  const FrameStats start = solver->wait_stats();
  const double middle_x = hit.collider.find("[0.55") == std::string::npos ? 0.5 : 0.55;
  Vec3d given = Vec3d::Zero();
  double turned = 0;
  FrameStats s;
  for (int frame = 0; frame < 12; ++frame) {
    solver->wait_advance_frame();
    s = solver->wait_stats();
    const ColliderForce& f = s.colliders[0];
    given += frame_s * f.force_N;
    turned += frame_s * (f.torque_N_m.z() + middle_x * f.force_N.y() - 0.5 * f.force_N.x());
  }
  const Vec3d lost = start.momentum - s.momentum;
  const double turn = start.angular_momentum.z() - s.angular_momentum.z();
  fmt::print("the block loses {:.5f} {:.5f} N s, {:.5f} N m s; the collider gets {:.5f} {:.5f}, {:.5f}\n",
             lost.x(), lost.y(), turn, given.x(), given.y(), turned);
  EXPECT_GT(given.x(), 0.3 * start.momentum.x());
  EXPECT_LE((lost - given).norm(), 1e-5 * start.momentum.norm());
  EXPECT_LE(std::fabs(turn - turned), hit.turn_bound * start.momentum.norm() * 0.5);
}

constexpr std::array kColliders = {
    "shape = \"sphere\"\ncenter = [0.55, 0.5]\nradius = 0.12\n",
    "shape = \"box\"\ncenter = [0.5, 0.5]\nhalf_size = [0.003, 0.3]\n",  // met by particles alone
    "shape = \"box\"\ncenter = [0.5, 0.5]\nhalf_size = [0.08, 0.2]\nrotate_deg = 20\n",
    "shape = \"plane\"\ncenter = [0.5, 0.5]\nnormal = [-3, 1]\n",
    "shape = \"capsule\"\ncenter = [0.5, 0.5]\nradius = 0.05\nhalf_height = 0.1\nrotate_deg = 20\n"};

TEST(ColliderForce, IsWhatAThrownBlockLoses) {
  for (const std::string collider : kColliders) expect_balance({.collider = "friction = 0.3\n" + collider});
}

// A particle moves a cell in a step, and is pushed as far back.
TEST(ColliderForce, IsWhatAFastBlockLoses) {
  for (const std::string collider : kColliders)
    expect_balance({.collider = "friction = 0.3\n" + collider, .speed_m_s = 40});
}

// Beside a collider particles lose motion that the grid does not have. A particle that is pushed out of one
// takes what it keeps of its own motion along: that turns it, and nobody counts it.
TEST(ColliderForce, HasWhatIsLostOfOwnMotion) {
  for (const std::string more : {"friction = 0.3\n", "boundary = \"slip\"\n", "boundary = \"stick\"\n"}) {
    for (const std::string collider : kColliders)
      expect_balance(
          {.collider = more + collider, .solver = "[solver]\ntransfer = \"aflip\"\n", .turn_bound = 2e-4});
  }
}

// A ball that slides along a plane without friction keeps its way, whatever its transfer.
TEST(ColliderForce, IsAlongTheNormalWithoutFriction) {
  for (const std::string transfer : {"apic", "aflip"}) {
    const auto solver = wait_start(
        "dim = 2\ngravity = [0, 0]\n[solver]\ntransfer = \"" + transfer +
        "\"\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 0.01\n[[emitter]]\nshape "
        "= "
        "\"sphere\"\ncenter = [0.3, 0.32]\nradius = 0.1\nvelocity = [2, -1]\nmaterial = \"jelly\"\n"
        "jelly = { youngs_modulus_Pa = 1e5 }\n[[collider]]\nshape = \"plane\"\ncenter = [0.5, 0.2]\nnormal = "
        "[0, "
        "1]\n");
    const Vec3d before = solver->wait_stats().momentum;
    wait_advance(*solver, 20);
    const Vec3d after = solver->wait_stats().momentum;
    fmt::print("{}: from {:.5f} {:.5f} to {:.5f} {:.5f} kg m/s\n", transfer, before.x(), before.y(),
               after.x(), after.y());
    EXPECT_GT(after.y(), 0);
    EXPECT_NEAR(after.x(), before.x(), 1e-4 * before.x());
  }
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
