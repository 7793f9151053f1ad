// Thin and fast colliders: nothing comes through, from whatever side.
//
// Seen to fail before particles met colliders: boxes of up to 1.8 cells let everything through, and one that
// came with 100 m/s left all jelly behind.
#include <algorithm>
#include <cmath>
#include <string>

#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr int kCells = 64;

// A slab of material flies with 3 m/s at a plate of so many cells, whose middle is at a node or between two.
std::string slab_at_plate(const char* material, double cells, double offset, bool from_above) {
  const double dx = 1.0 / kCells, plate = (32 + offset) * dx, side = from_above ? 1 : -1;
  return fmt::format(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = "
      "0.02\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.5, {}]\nhalf_size = [0.1, 0.1]\nvelocity = [0, {}]\n"
      "material = \"{}\"\n[[collider]]\nshape = \"box\"\ncenter = [0.5, {}]\nhalf_size = [0.6, {}]\n",
      kCells, plate + side * 0.2, -3 * side, material, plate, cells * dx / 2);
}

TEST(ThinCollider, LetsNothingThrough) {
  for (const char* material : {"water", "jelly", "sand"}) {
    for (const double cells : {0.2, 0.9, 1.0, 1.8, 2.0, 4.0}) {
      for (const double offset : {0.0, 0.5}) {
        for (const bool from_above : {true, false}) {
          const scene::SceneConfig scene =
              parse_physics_scene(slab_at_plate(material, cells, offset, from_above));
          const auto solver = wait_start(scene, 1);
          wait_advance(*solver, 10);
          const double surface = scene.colliders[0].center.y() + (from_above ? 1 : -1) * cells / kCells / 2;
          const ParticleSnapshot s = solver->wait_snapshot();
          const auto behind = std::ranges::count_if(s.position, [&](const Vec3f& p) {
            return (from_above ? surface - p.y() : p.y() - surface) > 1e-5;
          });
          EXPECT_EQ(behind, 0) << material << ", " << cells << " cells, offset " << offset << ", "
                               << (from_above ? "from above" : "from below");
        }
      }
    }
  }
}

// A plate comes with a speed that is many times the material's own waves: all of it is in front of the plate.
TEST(FastCollider, TakesAlongWhatItMeets) {
  const auto solver = wait_start(parse_physics_scene(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmin = [0, 0]\nmax = [2, 0.5]\n[grid]\nresolution = 128\n"
      "[time]\nframe_dt_s = 0.001\n[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.25]\nhalf_size = [0.1, "
      "0.1]\n"
      "material = \"jelly\"\n[[collider]]\nshape = \"box\"\ncenter = [0.3, 0.25]\nhalf_size = [0.03, 0.3]\n"
      "velocity = [100, 0]\n"));
  wait_advance(*solver, 10);
  for (const Vec3f& p : solver->wait_snapshot().position) ASSERT_GE(p.x(), 1.3 + 0.03 - 1e-4);
}

// A thin arm that turns in a pool stirs it, and nothing is on its other side than where the arm came from.
TEST(FastCollider, SweepsAsItTurns) {
  const auto solver = wait_start(parse_physics_scene(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = "
      "0.01\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.75, 0.6]\nhalf_size = [0.1, 0.05]\nmaterial = \"sand\"\n"
      "[[collider]]\nshape = \"box\"\ncenter = [0.5, 0.5]\nhalf_size = [0.45, 0.004]\n"
      "angular_velocity_rad_s = 20\n"));
  for (int frame = 1; frame <= 5; ++frame) {
    solver->wait_advance_frame();
    const double angle = 20 * 0.01 * frame;
    for (const Vec3f& p : solver->wait_snapshot().position) {
      const double x = p.x() - 0.5, y = p.y() - 0.5;
      // Beside the arm, which sand may leave at its end, it is above.
      if (std::abs(std::cos(angle) * x + std::sin(angle) * y) > 0.44) continue;
      ASSERT_GE(-std::sin(angle) * x + std::cos(angle) * y, 0.004 - 1e-4) << frame << ": " << p.transpose();
    }
  }
}

// Two boxes make a wedge that is closed below, and one of them sticks out of the domain: what falls into the
// wedge is pushed from one into the other, or against the wall.
std::string wedge(const std::string& material, const std::string& transfer, double degrees) {
  const double off = 0.35 * std::sin(degrees * std::acos(-1) / 180) + 0.03;
  const auto box = [&](double side) {
    return fmt::format(
        "[[collider]]\nshape = \"box\"\ncenter = [{}, 0.35]\nhalf_size = [0.05, 0.35]\nrotate_deg = {}\n",
        0.5 - side * off, side * degrees);
  };
  return fmt::format(
      "dim = 2\n[solver]\ntransfer = \"{}\"\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\n"
      "frame_dt_s = 0.04\n[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.62]\nhalf_size = [{}, 0.1]\n"
      "velocity = [0, -8]\nmaterial = \"{}\"\n{}{}",
      transfer, degrees > 15 ? 0.1 : 0.05, material, box(1), box(-1));
}

// Seen to fail when particles were pushed once: up to 31 of 321 grains were as deep as 1.9 cells in a box.
TEST(Wedge, HoldsWhatIsPinchedInIt) {
  for (const std::string material : {"jelly", "sand", "water"}) {
    for (const std::string transfer : {"apic", "aflip"}) {
      for (const double degrees : {10.0, 40.0}) {
        SCOPED_TRACE(material + ", " + transfer + fmt::format(", {} degrees", degrees));
        const scene::SceneConfig scene = parse_physics_scene(wedge(material, transfer, degrees));
        const auto solver = wait_start(scene, 1);
        for (int frame = 0; frame < 15; ++frame) {
          solver->wait_advance_frame();
          for (const Vec3f& p : solver->wait_snapshot().position) {
            for (const double side : {1.0, -1.0}) {
              const double turn = side * degrees * std::acos(-1) / 180;
              const double x = p.x() - scene.colliders[side > 0 ? 0 : 1].center.x(), y = p.y() - 0.35;
              const double deep = std::min(0.05 - std::abs(std::cos(turn) * x + std::sin(turn) * y),
                                           0.35 - std::abs(std::cos(turn) * y - std::sin(turn) * x));
              ASSERT_LE(deep, 0.01 / kCells) << "frame " << frame << ": " << p.transpose();
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace coppice::mpm
