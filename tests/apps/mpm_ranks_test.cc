// The solver over ranks, which are threads here: the same bits as on one, whatever crosses their borders.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "apps/mpm/rank_solver.h"
#include "apps/scene/scene.h"
#include "core/error.h"
#include "core/local_ranks.h"

namespace coppice::mpm {
namespace {

using Program = std::function<void(Solver&)>;

void run_on(int n_ranks, const scene::SceneConfig& scene, const Program& program,
            const char* device = "cpu") {
  const auto make_device = [&] {
    return device == std::string("cpu") ? Device::cpu(1) : Device::named(device);
  };
  if (n_ranks == 0) return program(*Solver::create(make_device(), scene));
  run_on_ranks(n_ranks, [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(std::move(link));
    if (cluster.rank() != 0) return follow(make_device(), scene, {.cluster = cluster});
    const std::unique_ptr<Solver> solver = Solver::create(make_device(), scene, {.cluster = cluster});
    program(*solver);
  });
}

template <class T>
void expect_bits(const std::vector<T>& a, const std::vector<T>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  if (a.empty()) return;
  EXPECT_EQ(std::memcmp(static_cast<const void*>(a.data()), static_cast<const void*>(b.data()),
                        a.size() * sizeof(T)),
            0)
      << what;
}

struct Seen {
  ParticleSnapshot particles;
  FrameStats stats;
  double mass_on_grid = 0;
};
Seen see(Solver& solver) {
  Seen seen{solver.wait_snapshot_with({.stress = true}), solver.wait_stats()};
  for (const float v : solver.wait_density().values) seen.mass_on_grid += v;
  return seen;
}

void expect_same(const Seen& a, const Seen& b) {
  expect_bits(a.particles.position, b.particles.position, "position");
  expect_bits(a.particles.velocity, b.particles.velocity, "velocity");
  expect_bits(a.particles.affine, b.particles.affine, "affine");
  expect_bits(a.particles.deformation, b.particles.deformation, "deformation");
  expect_bits(a.particles.stress, b.particles.stress, "stress");
  expect_bits(a.particles.material_scalar, b.particles.material_scalar, "material_scalar");
  expect_bits(a.particles.emitter, b.particles.emitter, "emitter");
  EXPECT_EQ(a.stats.steps, b.stats.steps);
  EXPECT_EQ(a.stats.sorts, b.stats.sorts);
  EXPECT_EQ(a.stats.dt_s, b.stats.dt_s);
  EXPECT_EQ(a.stats.time_s, b.stats.time_s);
  EXPECT_EQ(a.stats.particles, b.stats.particles);
  EXPECT_EQ(a.stats.active_blocks, b.stats.active_blocks);
  EXPECT_EQ(a.stats.max_speed_m_s, b.stats.max_speed_m_s);
  EXPECT_EQ(a.stats.max_wave_m_s, b.stats.max_wave_m_s);
  EXPECT_EQ(a.stats.mass_in_kg, b.stats.mass_in_kg);
  EXPECT_EQ(a.stats.mass_out_kg, b.stats.mass_out_kg);
  EXPECT_NEAR(a.stats.mass_kg, b.stats.mass_kg, 1e-12 * a.stats.mass_kg);
  EXPECT_NEAR(a.stats.kinetic_J, b.stats.kinetic_J, 1e-12 * a.stats.kinetic_J);
  EXPECT_NEAR(a.stats.elastic_J, b.stats.elastic_J, 1e-9 * a.stats.elastic_J);
  EXPECT_NEAR(a.mass_on_grid, b.mass_on_grid, 1e-6 * a.mass_on_grid);
  // Forces are sums of whole numbers.
  ASSERT_EQ(a.stats.colliders.size(), b.stats.colliders.size());
  for (size_t c = 0; c < a.stats.colliders.size(); ++c) {
    EXPECT_EQ(a.stats.colliders[c].force_N, b.stats.colliders[c].force_N) << c;
    EXPECT_EQ(a.stats.colliders[c].torque_N_m, b.stats.colliders[c].torque_N_m) << c;
    EXPECT_EQ(a.stats.colliders[c].side_force_N, b.stats.colliders[c].side_force_N) << c;
  }
}

struct Case {
  const char* name;
  const char* scene;
  int frames;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// A cube of jelly goes through all of the domain and into a wall, and back.
constexpr Case kJelly{"jelly",
                      "dim = 3\ngravity = [0, 0, 0]\n[domain]\nmax = [1, 0.5, 0.5]\n[grid]\nresolution = 32\n"
                      "[time]\nframe_dt_s = 0.04\n[[emitter]]\nshape = \"box\"\ncenter = [0.2, 0.2, 0.2]\n"
                      "half_size = [0.12, 0.12, 0.12]\nvelocity = [3, 0.7, 0.5]\nmaterial = \"jelly\"\n",
                      8};
// A knot flies through a long box, past all borders between ranks, and a mesh that turns hits it.
constexpr Case kKnot{
    "knot",
    "dim = 3\ngravity = [0, 0, 0]\n[domain]\nmax = [2, 0.5, 0.5]\n[grid]\nresolution = "
    "64\n[time]\nframe_dt_s = "
    "0.05\n[[emitter]]\nshape = \"mesh\"\nmesh = \"../meshes/knot.obj\"\nfit = 0.4\ntranslate = [0.3, 0.25, "
    "0.25]\nvelocity = [4, 0.2, 0]\nmaterial = \"jelly\"\n[[collider]]\nshape = \"mesh\"\nmesh = "
    "\"../meshes/knot.obj\"\nfit = 0.2\ntranslate = [1.2, 0.1, 0.25]\nangular_velocity_rad_s = [0, 2, 0]\n",
    8};
// Four materials meet a sphere that moves, and a box whose sides are told apart.
constexpr Case kMixed{
    "mixed",
    "dim = 2\n[grid]\nresolution = 48\n[time]\nframe_dt_s = 0.02\n[[emitter]]\nshape = \"box\"\ncenter = "
    "[0.3, "
    "0.7]\nhalf_size = [0.15, 0.1]\nmaterial = \"sand\"\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.7, "
    "0.75]\n"
    "radius = 0.12\nvelocity = [-1, -1]\nmaterial = \"snow\"\nstiffness_spread = 0.3\nseed = 3\n[[emitter]]\n"
    "shape = \"box\"\ncenter = [0.5, 0.2]\nhalf_size = [0.4, 0.1]\nmaterial = \"water\"\n[[emitter]]\nshape "
    "= "
    "\"box\"\ncenter = [0.5, 0.5]\nhalf_size = [0.08, 0.06]\nmaterial = \"jelly\"\n[[collider]]\nshape = "
    "\"sphere\"\ncenter = [0.15, 0.35]\nradius = 0.08\nvelocity = [1, 0]\n[[collider]]\nshape = \"box\"\n"
    "center = [0.8, 0.1]\nhalf_size = [0.08, 0.08]\ntractions = true\n",
    8};
// Water comes in on one side and leaves on the other, past a cylinder.
constexpr Case kFlow{
    "flow",
    "dim = 2\ngravity = [0, 0]\n[domain]\nmax = [2, 1]\n[grid]\nresolution = 48\n[time]\nframe_dt_s = 0.04\n"
    "[[emitter]]\nshape = \"box\"\ncenter = [0.25, 0.5]\nhalf_size = [0.125, 0.2]\nvelocity = [3.0, 0.0]\n"
    "material = \"water\"\n[emitter.inflow]\nfrom_s = 0.01\n[[collider]]\nshape = \"sphere\"\ncenter = [0.8, "
    "0.5]\nradius = 0.1\n[[outflow]]\ncenter = [1.6, 0.5]\nhalf_size = [0.2, 0.6]\n",
    16};
// Transfers that keep particles' own motion have second values in their nodes.
constexpr Case kWide{"wide",
                     "dim = 3\n[grid]\nresolution = 24\n[solver]\ntransfer = \"aflip\"\n[time]\nframe_dt_s = "
                     "0.03\n[[emitter]]\nshape = \"box\"\ncenter = [0.3, 0.3, 0.5]\nhalf_size = [0.25, 0.25, "
                     "0.4]\nmaterial = \"water\"\n",
                     6};

// Meshes are named as by the shipped scenes.
scene::SceneConfig parse(const Case& c) {
  return scene::parse_scene(c.scene, COPPICE_SOURCE_DIR "/assets/scenes/ranks.toml");
}

class MpmRanks : public testing::TestWithParam<Case> {};

TEST_P(MpmRanks, HaveTheBitsOfOne) {
  const Case& c = GetParam();
  const scene::SceneConfig scene = parse(c);
  std::vector<Seen> expected;
  const auto program = [&](std::vector<Seen>& seen) {
    return [&](Solver& solver) {
      solver.wait_ready();
      for (int frame = 1; frame <= c.frames; ++frame) {
        solver.wait_advance_frame();
        if (frame % (c.frames / 2) == 0) seen.push_back(see(solver));
      }
    };
  };
  run_on(0, scene, program(expected));
  for (const int n : {1, 2, 3, 4}) {
    SCOPED_TRACE(fmt::format("{} ranks", n));
    std::vector<Seen> seen;
    run_on(n, scene, program(seen));
    ASSERT_EQ(seen.size(), expected.size());
    for (size_t i = 0; i < seen.size(); ++i) expect_same(expected[i], seen[i]);
    if (HasFailure()) break;
  }
}

// From any number of ranks to any other; the state itself is the same on all.
TEST_P(MpmRanks, GoOnFromACheckpointWithTheSameBits) {
  const Case& c = GetParam();
  const scene::SceneConfig scene = parse(c);
  std::optional<Seen> expected;
  std::vector<std::byte> state_of_one;
  const auto bytes_of = [](const Checkpoint& checkpoint) {
    std::vector<std::byte> bytes;
    encode(checkpoint, [&](auto piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    return bytes;
  };
  const auto advance = [](Solver& solver, int frame) {
    while (solver.frame() < frame) solver.wait_advance_frame();
  };
  const int middle = c.frames / 2 + 1, end = middle + 2;
  run_on(0, scene, [&](Solver& solver) {
    advance(solver, middle);
    state_of_one = bytes_of(solver.wait_checkpoint());
    advance(solver, end);
    expected = see(solver);
  });
  for (const auto& [n_before, n_behind] :
       {std::pair(0, 0), std::pair(0, 3), std::pair(3, 2), std::pair(2, 0)}) {
    SCOPED_TRACE(fmt::format("{} ranks, then {}", n_before, n_behind));
    std::vector<std::byte> state;
    run_on(n_before, scene, [&](Solver& solver) {
      advance(solver, middle);
      state = bytes_of(solver.wait_checkpoint());
    });
    EXPECT_EQ(state, state_of_one);
    run_on(n_behind, scene, [&](Solver& solver) {
      solver.wait_advance_frame();  // it is not where it goes on
      solver.wait_restore(decode(state));
      EXPECT_EQ(solver.frame(), middle);
      EXPECT_EQ(bytes_of(solver.wait_checkpoint()), state_of_one);
      advance(solver, end);
      expect_same(*expected, see(solver));
    });
    if (HasFailure()) break;
  }
}

TEST(MpmCheckpoint, OtherScenesAreRefused) {
  const auto make = [](const Case& c) { return Solver::create(Device::cpu(1), parse(c)); };
  const auto jelly = make(kJelly), mixed = make(kMixed), flow = make(kFlow), wide = make(kWide);
  const auto refusal = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "it was not refused";
  };
  EXPECT_THAT(refusal([&] { mixed->wait_restore(flow->wait_checkpoint()); }),
              testing::HasSubstr("other emitters"));
  Checkpoint two = jelly->wait_checkpoint();
  two.dim = 2;
  EXPECT_THAT(refusal([&] { wide->wait_restore(two); }), testing::HasSubstr("another dimension"));
  Checkpoint few = jelly->wait_checkpoint();
  few.attributes.pop_back();
  EXPECT_THAT(refusal([&] { jelly->wait_restore(few); }), testing::HasSubstr("size"));
  jelly->wait_advance(1);
  EXPECT_THAT(refusal([&] { jelly->wait_checkpoint(); }), testing::HasSubstr("between two frames"));
  EXPECT_THAT(refusal([] { decode(std::vector<std::byte>(100)); }), testing::HasSubstr("checkpoint"));
}

INSTANTIATE_TEST_SUITE_P(Scenes, MpmRanks, testing::Values(kJelly, kKnot, kMixed, kFlow, kWide),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace coppice::mpm
