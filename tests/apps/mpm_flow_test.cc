// Inflows and outflows of a running solver: mass is counted, streams go on, and hands act beside them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "apps/geometry/shapes_mesh.h"
#include "apps/mpm/inflow_pattern.h"
#include "apps/mpm/solver.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/run_outputs.h"
#include "tests/sparse/test_devices.h"

namespace coppice::mpm {
namespace {

class Flow : public DeviceTest {
 protected:
  std::unique_ptr<Solver> make(const std::string& text, IntrusivePtr<Device> on = {}) {
    return Solver::create(on ? on : device, scene::parse_scene(text, "flow.toml"));
  }
  // A jet through the left half of a channel without gravity; what comes to the right end leaves.
  static std::string channel(const std::string& material, const std::string& more = "", int cells = 32) {
    return fmt::format(
        "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [2, 1]\n[grid]\nresolution = {}\n[time]\nframe_dt_s = "
        "0.02\n[walls]\nall = \"separate\"\n[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.5]\nhalf_size "
        "= [0.125, 0.15]\nvelocity = [2.0, 0.0]\nmaterial = \"{}\"\n[emitter.inflow]\n{}",
        cells, material, more);
  }
  static constexpr const char* kEnd = "[[outflow]]\ncenter = [1.75, 0.5]\nhalf_size = [0.25, 0.6]\n";
  static double mass_of(const ParticleSnapshot& s) {
    double sum = 0;
    for (const float m : s.mass) sum += m;
    return sum;
  }
};

// Density * area * velocity, in kg/s: 1000 kg/m^2 of water, 0.3 m, 2 m/s.
TEST_P(Flow, BringsItsRateFromBeginToEnd) {
  const std::unique_ptr<Solver> solver =
      make(channel("water", "from_s = 0.03\nuntil_s = 0.33\n[emitter.water]\nbulk_modulus_Pa = 1e4\n"));
  EXPECT_EQ(solver->num_particles(), 0u);
  solver->wait_advance_frame();
  EXPECT_EQ(solver->wait_stats().mass_in_kg, 0) << "it begins later";
  const double body = 0.25 * 0.3 * 1000, rate = 1000 * 0.3 * 2;
  for (int frame = 2; frame <= (is_emulated() ? 3 : 20); ++frame) {
    solver->wait_advance_frame();
    const FrameStats s = solver->wait_stats();
    const double on_s = std::min(0.33, frame * 0.02) - 0.03;
    const double particle = 1000.0 / 16 / 16 / 4;
    EXPECT_NEAR(s.mass_in_kg, body + rate * on_s, 5 * particle) << "frame " << frame;
    EXPECT_NEAR(s.mass_kg, s.mass_in_kg, 1e-9 * s.mass_kg);
    EXPECT_EQ(s.mass_out_kg, 0);
  }
}

// Mass is what was there, and came, and did not leave, to the last bit of a sum of equal masses.
TEST_P(Flow, InflowAndOutflowComeIntoBalance) {
  const bool is_short = is_emulated();
  const std::unique_ptr<Solver> solver =
      make(channel("water", "[emitter.water]\nbulk_modulus_Pa = 1e4\n") + kEnd);
  const double start = solver->wait_stats().mass_kg;
  EXPECT_EQ(solver->wait_stats().mass_in_kg, 0);
  double before = 0;
  const int frames = is_short ? 3 : 80;
  for (int frame = 1; frame <= frames; ++frame) {
    solver->wait_advance_frame();
    const FrameStats s = solver->wait_stats();
    ASSERT_DOUBLE_EQ(s.mass_kg, start + s.mass_in_kg - s.mass_out_kg) << "frame " << frame;
    const ParticleSnapshot now = solver->wait_snapshot();
    ASSERT_EQ(now.position.size(), s.particles);
    for (const Vec3f& p : now.position) ASSERT_LT(p.x(), 1.5f) << "it is in the outflow";
    if (frame == 60) before = s.mass_out_kg;
  }
  const FrameStats end = solver->wait_stats();
  EXPECT_GT(end.mass_in_kg, 0.9 * 600 * 0.02 * frames);
  if (is_short) return;
  // The outflow takes as much in 0.4 s as the inflow brings.
  EXPECT_NEAR(end.mass_out_kg - before, 600 * 0.4, 0.05 * 600 * 0.4);
  EXPECT_LT(end.max_speed_m_s, 3);
}

struct Motion {
  double ratio = 0, speed = 0, noise = 0;  // means of volume ratio, vx (m/s), and (v - (2, 0))^2 (m^2/s^2)
};

Motion motion_of(const ParticleSnapshot& s, float low, float high) {
  Motion sum;
  double n = 0;
  for (size_t i = 0; i < s.position.size(); ++i) {
    const Vec3f& p = s.position[i];
    if (p.x() < low || p.x() > high || std::abs(p.y() - 0.5f) > 0.05f) continue;
    sum.ratio += s.volume_ratio[i], sum.speed += s.velocity[i].x(), ++n;
    sum.noise += (s.velocity[i] - Vec3f(2, 0, 0)).squaredNorm();
  }
  EXPECT_GT(n, 100);
  return {sum.ratio / n, sum.speed / n, sum.noise / n};
}

// The pressure of water follows from the grid's density. A free jet has no more of it, where one slab follows
// another, than a body that was emitted as a whole and flies as long.
TEST_P(Flow, AJetOfWaterIsAsCalmAsABody) {
  if (is_emulated()) GTEST_SKIP() << "an emulated GPU takes minutes for it";
  const std::string stiffness = "[emitter.water]\nbulk_modulus_Pa = 1e4\n";
  const std::unique_ptr<Solver> jet = make(channel("water", stiffness, 64) + kEnd);
  for (int frame = 0; frame < 40; ++frame) jet->wait_advance_frame();
  const ParticleSnapshot s = jet->wait_snapshot();
  scene::SceneConfig scene = scene::parse_scene(channel("water", stiffness, 64), "body.toml");
  scene.emitters[0].inflow.reset();
  scene.emitters[0].center.x() = 0.5, scene.emitters[0].half_size.x() = 0.45;
  const std::unique_ptr<Solver> body = Solver::create(device, scene);
  for (int frame = 0; frame < 23; ++frame) body->wait_advance_frame();
  const Motion streams = motion_of(s, 0.4f, 1.3f), flies = motion_of(body->wait_snapshot(), 0.97f, 1.87f);
  EXPECT_NEAR(streams.ratio, 1, 0.005);
  EXPECT_NEAR(flies.ratio, 1, 0.005);
  EXPECT_NEAR(streams.speed, 2, 0.04);
  EXPECT_LT(streams.noise, 1.5 * flies.noise + 1e-4);
  // Evenly spaced along the jet: as many in each tenth of a metre.
  std::vector<double> slices(9);
  for (const Vec3f& p : s.position) {
    const auto slice = static_cast<int>(std::floor((static_cast<double>(p.x()) - 0.4) * 10));
    if (slice >= 0 && slice < 9) ++slices[static_cast<size_t>(slice)];
  }
  for (const double count : slices) EXPECT_NEAR(count, 0.1 * 0.3 * 4 * 32 * 32, 0.06 * count);
}

TEST_P(Flow, EmittersLeaveByTheirOwnMass) {
  const std::string two =
      channel("water",
              "[[emitter]]\nshape = \"sphere\"\ncenter = [1.2, 0.5]\nradius = 0.13\nvelocity = [4.0, "
              "0.0]\nmaterial = \"snow\"\n") +
      kEnd + "[[outflow]]\ncenter = [1.9, 0.9]\nhalf_size = [0.2, 0.2]\n";
  const std::unique_ptr<Solver> solver = make(two);
  const ParticleSnapshot start = solver->wait_snapshot();
  const auto mass_of_emitter = [](const ParticleSnapshot& s, uint32_t emitter) {
    double sum = 0;
    for (size_t i = 0; i < s.mass.size(); ++i) sum += s.emitter[i] == emitter ? s.mass[i] : 0;
    return sum;
  };
  for (int frame = 0; frame < (is_emulated() ? 2 : 12); ++frame) solver->wait_advance_frame();
  const FrameStats s = solver->wait_stats();
  const ParticleSnapshot end = solver->wait_snapshot();
  EXPECT_NEAR(s.mass_kg, mass_of(start) + s.mass_in_kg - s.mass_out_kg, 1e-9 * s.mass_kg);
  const double snow_out = mass_of_emitter(start, 1) - mass_of_emitter(end, 1);
  EXPECT_NEAR(s.mass_out_kg, snow_out, 1e-9 * s.mass_kg) << "water has not come so far";
  if (is_emulated()) return;
  EXPECT_NEAR(snow_out, 400 * M_PI * 0.13 * 0.13, 1e-5 * snow_out) << "all of the ball, with its exact mass";
}

// A batch's length and the number of threads change nothing of who comes.
TEST_P(Flow, HandsActBesideAnInflow) {
  const std::string text =
      channel("jelly",
              "[emitter.jelly]\nyoungs_modulus_Pa = 1e4\n[[emitter]]\nshape = \"box\"\ncenter = [1.0, "
              "0.2]\nhalf_size = [0.1, 0.1]\nmaterial = \"snow\"\n") +
      kEnd;
  const auto run = [&](IntrusivePtr<Device> on) {
    const std::unique_ptr<Solver> solver = make(text, std::move(on));
    const double start = solver->wait_stats().mass_kg;
    double by_hand = 0;
    const int rounds = is_emulated() ? 2 : 8;
    for (int i = 0; i < rounds; ++i) {
      solver->wait_advance(5);
      const double before = solver->wait_stats().mass_kg;
      if (i % 3 == 0) solver->wait_emit(1, Vec3f(1.2f, 0.8f, 0), 0.1f, Vec3f(1, 0, 0));
      if (i % 3 == 1) solver->wait_cut({Vec3f(0.2f, 0.5f, 0), Vec3f(0.4f, 0.5f, 0), 0.05f});
      if (i % 3 == 2) solver->wait_push({Vec3f(0.3f, 0.5f, 0), Vec3f(0.3f, 0.5f, 0), 0.1f}, Vec3f(0, 3, 0));
      by_hand += solver->wait_stats().mass_kg - before;
      const FrameStats s = solver->wait_stats();
      EXPECT_NEAR(s.mass_kg, start + s.mass_in_kg - s.mass_out_kg + by_hand, 1e-9 * start);
    }
    EXPECT_GT(solver->wait_stats().mass_in_kg, 0);
    EXPECT_NE(by_hand, 0);
    return solver->wait_snapshot();
  };
  const ParticleSnapshot one = run(device);
  ASSERT_GT(one.position.size(), 100u);
  if (device->name() != "cpu") return;
  const ParticleSnapshot other = run(Device::cpu(1));
  ASSERT_EQ(one.position.size(), other.position.size());
  EXPECT_EQ(std::memcmp(one.position.data(), other.position.data(), one.position.size() * sizeof(Vec3f)), 0);
  EXPECT_EQ(std::memcmp(one.velocity.data(), other.velocity.data(), one.velocity.size() * sizeof(Vec3f)), 0);
}

// Particles that are there when an inflow begins stay, and colliders stay empty.
TEST_P(Flow, ComesWhereThereIsRoom) {
  const std::string text =
      channel("water",
              "from_s = 0.004\n[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.5]\nhalf_size = [0.125, "
              "0.15]\nmaterial = "
              "\"water\"\n[[collider]]\nshape = \"sphere\"\ncenter = [0.1, 0.7]\nradius = 0.15\n");
  const std::unique_ptr<Solver> solver = make(text);
  const uint64_t start = solver->num_particles();
  while (solver->time_s() < 0.006) solver->wait_advance(1);
  const FrameStats s = solver->wait_stats();
  EXPECT_GT(s.mass_in_kg, 0);
  EXPECT_LT(s.mass_in_kg, 0.25 * s.mass_kg) << "the shape was full";
  EXPECT_GT(solver->num_particles(), start);
  const ParticleSnapshot all = solver->wait_snapshot();
  for (size_t i = start; i < all.position.size(); ++i)
    EXPECT_GT((all.position[i] - Vec3f(0.1f, 0.7f, 0)).norm(), 0.149f);
}

// Seen to fail: a mesh's distances were looked up in a GPU's memory, and the program crashed.
TEST_P(Flow, ComesBesideMeshes) {
  TemporaryFolder folder;
  const std::string small = folder / "small.obj", plate = folder / "plate.obj";
  write_obj(small, box_mesh({-0.05f, -0.05f, -0.05f}, {0.05f, 0.05f, 0.05f}));
  write_obj(plate, box_mesh({-0.1f, -0.15f, -0.4f}, {0.1f, 0.15f, 0.4f}));
  const std::unique_ptr<Solver> solver = make(fmt::format(
      "dim = 3\n[grid]\nresolution = 16\n[time]\nframe_dt_s = 0.002\n[[emitter]]\nshape = \"box\"\ncenter = "
      "[0.5, 0.5, 0.5]\nhalf_size = [0.2, 0.1, 0.2]\nvelocity = [0.0, -1.0, 0.0]\nmaterial = \"sand\"\n"
      "[emitter.inflow]\nfrom_s = 0.001\n[[collider]]\nshape = \"sphere\"\ncenter = [0.1, 0.1, 0.1]\nradius "
      "= 0.05\n[[collider]]\nshape = \"mesh\"\nmesh = \"{}\"\ntranslate = [0.9, 0.9, 0.9]\n[[collider]]\n"
      "shape = \"mesh\"\nmesh = \"{}\"\ntranslate = [0.4, 0.5, 0.5]\n",
      small, plate));
  EXPECT_EQ(solver->num_particles(), 0u);
  solver->wait_advance_frame();
  const ParticleSnapshot all = solver->wait_snapshot();
  for (const Vec3f& x : all.position)
    EXPECT_GT(x.x(), 0.5f - 0.02f) << "the rest of the shape is in the plate";
  // Half of the 0.4 m along x is free, with eight particles to a cell.
  EXPECT_NEAR(static_cast<double>(all.position.size()), 0.2 * 0.2 * 0.4 * 16 * 16 * 16 * 8, 60);
}

// Snapshots are in the order of arrival, also where most of those that came are gone.
TEST_P(Flow, SnapshotsKeepTheOrderOfArrival) {
  const std::unique_ptr<Solver> solver = make(channel("snow"));
  solver->wait_advance(1);
  ParticleSnapshot before = solver->wait_snapshot();
  const auto cut = [&](float low) { solver->wait_cut({Vec3f(low, 0.5f, 0), Vec3f(1.9f, 0.5f, 0), 0.2f}); };
  cut(0.33f);  // a part of them
  ParticleSnapshot after = solver->wait_snapshot();
  ASSERT_GT(after.position.size(), 2u);
  EXPECT_EQ(after.position[0], before.position[0]);
  cut(0.2f), cut(0.22f);
  // One after the other, ids are used up.
  for (int i = 0; i < 12; ++i) {
    solver->wait_emit(0, Vec3f(1.5f, 0.5f, 0), 0.15f, Vec3f::Zero());
    if (i < 11) cut(1.2f);
  }
  after = solver->wait_snapshot();
  ASSERT_EQ(after.position.size(), solver->num_particles());
  for (size_t i = 1; i < after.position.size(); ++i) {
    if (after.position[i - 1].x() < 1.2f || after.position[i].x() < 1.2f) continue;
    EXPECT_LE(after.position[i - 1].x(), after.position[i].x() + 1.0f / 16) << "sampled along x";
  }
}

TEST_P(Flow, StreamsInThreeDimensions) {
  const std::string text =
      "dim = 3\n[grid]\nresolution = 16\n[time]\nframe_dt_s = 0.01\n[[emitter]]\nshape = "
      "\"cylinder\"\ncenter = "
      "[0.5, 0.8, 0.5]\nradius = 0.15\nhalf_height = 0.1\nvelocity = [0.0, -3.0, 0.0]\nmaterial = "
      "\"sand\"\n[emitter.inflow]\n[[outflow]]\ncenter = [0.5, 0.1, 0.5]\nhalf_size = [0.6, 0.2, 0.6]\n";
  const std::unique_ptr<Solver> solver = make(text);
  const double start = solver->wait_stats().mass_kg;
  const int frames = is_emulated() ? 1 : 30;
  for (int frame = 0; frame < frames; ++frame) solver->wait_advance_frame();
  const FrameStats s = solver->wait_stats();
  EXPECT_DOUBLE_EQ(s.mass_kg, start + s.mass_in_kg - s.mass_out_kg);
  const scene::SceneConfig scene = scene::parse_scene(text, "flow.toml");
  const double rate = scene::density_kg_m3(scene.materials[0]) * M_PI * 0.15 * 0.15 * 3;
  EXPECT_NEAR(s.mass_in_kg, rate * 0.01 * frames, (is_emulated() ? 0.2 : 0.01) * rate * 0.01 * frames);
  EXPECT_EQ(s.mass_out_kg > 0, !is_emulated());
}

INSTANTIATE_TEST_SUITE_P(Mpm, Flow, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice::mpm
