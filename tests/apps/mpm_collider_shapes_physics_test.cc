// Planes, capsules, meshes and keyframes in the solver.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "apps/geometry/shapes_mesh.h"
#include "apps/scene/collider_motion.h"
#include "core/error.h"
#include "tests/apps/mpm_physics_util.h"

namespace coppice::mpm {
namespace {

constexpr double kGravity = 9.81;

// A block is thrown at a plane between the nodes, and turned against them: by its normal, or by keyframes.
TEST(PlaneCollider, LetsNothingBehindIt) {
  const std::string key = "[[collider.keyframe]]\nrotate_deg = 63.4349488\ntime = ";
  for (const char* material : {"water", "jelly", "sand"}) {
    for (const std::string& direction :
         {std::string("normal = [-2, 1]\n"), "normal = [0, 1]\n" + key + "0\n" + key + "1\n"}) {
      const auto solver = wait_start(parse_physics_scene(fmt::format(
          "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = "
          "0.02\n[[emitter]]\nshape = \"box\"\ncenter = [0.3, 0.6]\nhalf_size = [0.1, 0.1]\nvelocity = [3, "
          "-2]\nmaterial = \"{}\"\n[[collider]]\nshape = \"plane\"\ncenter = [0.61, 0.4]\n{}",
          material, direction)));
      const Vec3f normal = Vec3f(-2, 1, 0).normalized();
      for (int frame = 0; frame < 8; ++frame) {
        solver->wait_advance_frame();
        for (const Vec3f& p : solver->wait_snapshot().position)
          ASSERT_GE(normal.dot(p - Vec3f(0.61f, 0.4f, 0)), -1e-5f) << material << ", " << direction;
      }
    }
  }
}

// A pool stands on a plane between two rows of nodes, and keeps its depth but for what its weight takes.
TEST(PlaneCollider, CarriesAPoolThatKeepsItsDepth) {
  constexpr double kFloor = 0.083, kDepth = 0.32, kStiffness_Pa = 1e5;
  const auto solver = wait_start(parse_physics_scene(
      fmt::format("dim = 2\n[domain]\nmax = [0.4, 0.64]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = 1\n"
                  "[walls]\nall = \"slip\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.2, {}]\n"
                  "half_size = [0.2, {}]\nmaterial = \"water\"\nwater = {{ bulk_modulus_Pa = {} }}\n"
                  "[[collider]]\nshape = \"plane\"\ncenter = [0, {}]\nnormal = [0, 1]\nboundary = \"slip\"\n",
                  kFloor + kDepth / 2, kDepth / 2, kStiffness_Pa, kFloor)));
  const double exact = kDepth * (1 - 1000 * kGravity * kDepth / 3 / kStiffness_Pa);
  for (int second = 1; second <= 6; ++second) {
    solver->wait_advance_frame();
    const double depth = 2 * (mean_position(solver->wait_snapshot()).y() - kFloor);
    fmt::print("{} s: depth {:.4f} m, theory {:.4f} m\n", second, depth, exact);
    if (second % 3 == 0) {
      EXPECT_NEAR(depth, exact, 0.03 * exact);
    }
  }
}

// A thin capsule turns like an arm: sand is before it, and never behind.
TEST(CapsuleCollider, SweepsAsItTurns) {
  const auto solver = wait_start(parse_physics_scene(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = "
      "0.01\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.75, 0.6]\nhalf_size = [0.1, 0.05]\nmaterial = \"sand\"\n"
      "[[collider]]\nshape = \"capsule\"\ncenter = [0.5, 0.5]\nradius = 0.006\nhalf_height = 0.44\n"
      "rotate_deg = -90\nangular_velocity_rad_s = 20\nfriction = 0.2\n"));
  for (int frame = 1; frame <= 5; ++frame) {
    solver->wait_advance_frame();
    const double angle = 20 * 0.01 * frame;
    for (const Vec3f& p : solver->wait_snapshot().position) {
      const double x = p.x() - 0.5, y = p.y() - 0.5;
      if (std::abs(std::cos(angle) * x + std::sin(angle) * y) > 0.43) continue;
      ASSERT_GE(-std::sin(angle) * x + std::cos(angle) * y, 0.006 - 1e-4) << frame << ": " << p.transpose();
    }
  }
}

// A collider with keyframes at times between steps and frames takes along what sticks to it, and stops.
TEST(ColliderKeyframes, TakeAlongWhatSticksToThem) {
  const scene::SceneConfig scene = parse_physics_scene(
      "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 64\n[time]\nframe_dt_s = "
      "0.05\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.3, 0.5]\nhalf_size = [0.112, 0.112]\nmaterial = \"jelly\"\n"
      "jelly = { youngs_modulus_Pa = 1e6 }\n"
      "[[collider]]\nshape = \"box\"\ncenter = [0.3, 0.5]\nhalf_size = [0.1, 0.1]\nboundary = \"stick\"\n"
      "[[collider.keyframe]]\ntime = 0.033\n[[collider.keyframe]]\ntime = 0.2371\ncenter = [0.5, 0.6]\n"
      "rotate_deg = 90\n[[collider.keyframe]]\ntime = 0.31\ncenter = [0.5, 0.5]\nrotate_deg = 90\n");
  const auto solver = wait_start(scene);
  const ParticleSnapshot start = solver->wait_snapshot();
  for (int frame = 1; frame <= 8; ++frame) {
    solver->wait_advance_frame();
    const ParticleSnapshot s = solver->wait_snapshot();
    const scene::RigidPose pose = scene::pose_at(scene.colliders[0], 0.05 * frame);
    EXPECT_NEAR(solver->time_s(), 0.05 * frame, 1e-12);
    double worst = 0;
    for (size_t i = 0; i < s.position.size(); ++i) {
      const Vec3f from = start.position[i] - Vec3f(0.3f, 0.5f, 0);
      const Vec3d at = pose.center + (pose.world_from_local * from).cast<double>();
      worst = std::max(worst, (s.position[i].cast<double>() - at).norm());
    }
    fmt::print("frame {}: {:.2e} m off\n", frame, worst);
    // A layer of less than a cell is around it. Nodes have the collider's velocity at the beginning of a
    // step: its chords leave the circle.
    EXPECT_LT(worst, 0.5 / 64) << frame;
  }
}

// Without friction between two keyframes nothing happens; with it a plate that begins to move drags a block
// along with the acceleration of Coulomb's law, until both have one speed.
TEST(ColliderKeyframes, DragABlockByFriction) {
  constexpr double kFriction = 0.3;
  const auto solver = wait_start(parse_physics_scene(fmt::format(
      "dim = 2\n[domain]\nmax = [2, 0.5]\n[grid]\nresolution = 128\n[time]\nframe_dt_s = 0.05\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [0.6, 0.2]\nhalf_size = [0.1, 0.1]\nmaterial = \"jelly\"\n"
      "jelly = {{ youngs_modulus_Pa = 1e5 }}\n[[collider]]\nshape = \"box\"\ncenter = [1, 0.06]\n"
      "half_size = [3, 0.04]\nfriction = {}\n[[collider.keyframe]]\ntime = 0.1\n[[collider.keyframe]]\n"
      "time = 0.5\ncenter = [1.4, 0.06]\n",
      kFriction)));
  wait_advance(*solver, 2);
  EXPECT_NEAR(mean_velocity(solver->wait_snapshot()).x(), 0, 0.02);
  wait_advance(*solver, 4);
  const double exact = kFriction * kGravity * 0.2, measured = mean_velocity(solver->wait_snapshot()).x();
  fmt::print("{:.4f} m/s, Coulomb {:.4f}\n", measured, exact);
  EXPECT_NEAR(measured, exact, kFriction * kGravity * 0.08 / 4);
}

// Two keyframes are a constant velocity.
TEST(ColliderKeyframes, AreAVelocityWhereThereAreTwo) {
  const std::string scene =
      "dim = 2\n[domain]\nmax = [1, 1]\n[grid]\nresolution = 48\n[time]\nframe_dt_s = 0.02\n[[emitter]]\n"
      "shape = \"sphere\"\ncenter = [0.6, 0.4]\nradius = 0.1\nmaterial = \"jelly\"\n[[collider]]\n"
      "shape = \"capsule\"\ncenter = [0.25, 0.4]\nradius = 0.06\nhalf_height = 0.1\n";
  const auto by_velocity = wait_start(scene + "velocity = [2, 0]\nangular_velocity_rad_s = 1\n");
  const auto by_keys = wait_start(scene +
                                  "[[collider.keyframe]]\ntime = 0\n[[collider.keyframe]]\ntime = 0.5\n"
                                  "center = [1.25, 0.4]\nrotate_deg = 28.64788975654116\n");
  wait_advance(*by_velocity, 6), wait_advance(*by_keys, 6);
  const ParticleSnapshot a = by_velocity->wait_snapshot(), b = by_keys->wait_snapshot();
  for (size_t i = 0; i < a.position.size(); ++i)
    ASSERT_LT((a.position[i] - b.position[i]).norm(), 1e-4f) << i;
}

class MeshCollider : public testing::Test {
 protected:
  MeshCollider() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              fmt::format("mesh_collider_{}", testing::UnitTest::GetInstance()->random_seed());
    std::filesystem::create_directories(folder_);
  }
  ~MeshCollider() override { std::filesystem::remove_all(folder_); }
  std::string write(const char* name, const TriangleMesh& mesh) const {
    write_obj((folder_ / name).string(), mesh);
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

std::string thrown_down(int resolution, const char* material) {
  return fmt::format(
      "gravity = [0, 0, 0]\n[domain]\nmax = [1, 1, 1]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = 0.02\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.5, 0.7, 0.5]\nhalf_size = [0.12, 0.1, 0.12]\n"
      "velocity = [0, -3, 0]\nmaterial = \"{}\"\nparticles_per_cell = 4\n",
      resolution, material);
}

// A mesh of a turned box does what that box does, but that half a cell's distances round its edges.
TEST_F(MeshCollider, OfABoxDoesWhatTheBoxDoes) {
  const std::string file = write("box.obj", box_mesh({-0.2f, -0.1f, -0.3f}, {0.2f, 0.1f, 0.3f}));
  const auto box = wait_start(thrown_down(24, "jelly") +
                              "[[collider]]\nshape = \"box\"\ncenter = [0.52, 0.42, 0.5]\n"
                              "half_size = [0.2, 0.1, 0.3]\nrotate_deg = [10, 20, 30]\n");
  const auto mesh = wait_start(thrown_down(24, "jelly") +
                               fmt::format("[[collider]]\nshape = \"mesh\"\nmesh = \"{}\"\n"
                                           "translate = [0.52, 0.42, 0.5]\nrotate_deg = [10, 20, 30]\n",
                                           file));
  Vec3d by_box = Vec3d::Zero(), by_mesh = Vec3d::Zero();
  for (int frame = 0; frame < 5; ++frame) {
    box->wait_advance_frame(), mesh->wait_advance_frame();
    by_box += box->wait_stats().colliders[0].force_N, by_mesh += mesh->wait_stats().colliders[0].force_N;
  }
  const Vec3d off = mean_position(box->wait_snapshot()) - mean_position(mesh->wait_snapshot());
  fmt::print("middles {:.2e} m apart; forces {:.4g} and {:.4g} N\n", off.norm(), by_box.norm(),
             by_mesh.norm());
  EXPECT_LT(off.norm(), 0.25 / 24);
  EXPECT_LT((by_box - by_mesh).norm(), 0.05 * by_box.norm());
}

// A thin turned plate that moves and spins by keyframes: what it meets stays on its side.
TEST_F(MeshCollider, ThatIsThinAndMovesLetsNothingThrough) {
  constexpr float kThick = 1.0f / 24;
  const std::string file =
      write("plate.obj", box_mesh({-0.4f, -kThick / 2, -0.4f}, {0.4f, kThick / 2, 0.4f}));
  for (const char* material : {"sand", "water"}) {
    const scene::SceneConfig scene = parse_physics_scene(
        thrown_down(24, material) +
        fmt::format("[[collider]]\nshape = \"mesh\"\nmesh = \"{}\"\ntranslate = [0.5, 0.4, 0.5]\n"
                    "[[collider.keyframe]]\ntime = 0\n[[collider.keyframe]]\ntime = 0.1\n"
                    "center = [0.5, 0.5, 0.5]\nrotate_deg = [0, 0, 20]\n",
                    file));
    const auto solver = wait_start(scene);
    for (int frame = 1; frame <= 6; ++frame) {
      solver->wait_advance_frame();
      const scene::RigidPose pose = scene::pose_at(scene.colliders[0], solver->time_s());
      for (const Vec3f& p : solver->wait_snapshot().position) {
        const Vec3f local = pose.world_from_local.transpose() * (p - pose.center.cast<float>());
        if (std::abs(local.x()) > 0.35f || std::abs(local.z()) > 0.35f) continue;
        ASSERT_GE(local.y(), kThick / 2 - 0.05f / 24) << material << ", frame " << frame;
      }
    }
  }
}

TEST_F(MeshCollider, BearsTheWeightOfWhatRestsOnIt) {
  const std::string file = write("ball.obj", box_mesh({-0.4f, -0.1f, -0.4f}, {0.4f, 0.105f, 0.4f}));
  const auto solver = wait_start(fmt::format(
      "[domain]\nmax = [1, 1, 1]\n[grid]\nresolution = 24\n[time]\nframe_dt_s = 0.08\n[[emitter]]\n"
      "shape = \"box\"\ncenter = [0.5, 0.505, 0.5]\nhalf_size = [0.1, 0.1, 0.1]\nmaterial = \"jelly\"\n"
      "jelly = {{ youngs_modulus_Pa = 1e5 }}\n[[collider]]\nshape = \"mesh\"\nmesh = \"{}\"\n"
      "translate = [0.5, 0.3, 0.5]\n",
      file));
  const double weight = solver->wait_stats().mass_kg * kGravity;
  double mean = 0;
  for (int frame = 0; frame < 12; ++frame) {
    solver->wait_advance_frame();
    mean += solver->wait_stats().colliders[0].force_N.y() / 12;
  }
  fmt::print("{:.3f} N, weight {:.3f} N\n", mean, weight);
  EXPECT_NEAR(mean, -weight, 0.03 * weight);
}

TEST_F(MeshCollider, DoesTheSameOnAnEmulatedGpu) {
  const std::string file = write("knot.obj", torus_knot_mesh({}));
  const scene::SceneConfig scene = parse_physics_scene(
      thrown_down(10, "sand") + fmt::format("[[collider]]\nshape = \"mesh\"\nmesh = \"{}\"\nfit = 0.5\n"
                                            "translate = [0.5, 0.4, 0.5]\n[[collider.keyframe]]\ntime = 0\n"
                                            "[[collider.keyframe]]\ntime = 1\nrotate_deg = [0, 90, 0]\n",
                                            file));
  std::vector<Vec3d> middles, forces;
  for (const char* device : {"cpu", "simt"}) {
    const auto solver = Solver::create(Device::named(device), scene);
    solver->wait_ready();
    wait_advance(*solver, 2);
    middles.push_back(mean_position(solver->wait_snapshot()));
    forces.push_back(solver->wait_stats().colliders[0].force_N);
  }
  EXPECT_LT((middles[0] - middles[1]).norm(), 1e-5);
  EXPECT_GT(forces[0].norm(), 0);
  EXPECT_LT((forces[0] - forces[1]).norm(), 0.01 * forces[0].norm());
}

TEST_F(MeshCollider, RefusesASheet) {
  const std::string file = write("sheet.obj", box_mesh({-0.2f, 0, -0.2f}, {0.2f, 1e-4f, 0.2f}));
  try {
    Solver::create(Device::cpu(1), parse_physics_scene(thrown_down(16, "sand") +
                                                       fmt::format("[[collider]]\nshape = \"mesh\"\nmesh = "
                                                                   "\"{}\"\ntranslate = [0.5, 0.31, 0.5]\n",
                                                                   file)));
    FAIL() << "a sheet was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("encloses nothing as wide as 0.0312 m"), std::string::npos)
        << error.what();
  }
}

TEST_F(MeshCollider, RefusesAnOpenMeshWhereThatIsAskedFor) {
  TriangleMesh open = sphere_mesh(Vec3f::Zero(), 0.2f, 8, 12);
  open.triangles.pop_back();
  const std::string file = write("open.obj", open);
  const std::string text =
      thrown_down(16, "sand") +
      fmt::format("[[collider]]\nshape = \"mesh\"\nmesh = \"{}\"\ntranslate = [0.5, 0.3, 0.5]\n", file);
  EXPECT_NO_THROW(Solver::create(Device::cpu(1), parse_physics_scene(text)));
  try {
    Solver::create(Device::cpu(1), parse_physics_scene(text + "strict = true\n"));
    FAIL() << "an open mesh was taken";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("physics.toml:"), std::string::npos) << what;
    EXPECT_NE(what.find("open edges"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace coppice::mpm
