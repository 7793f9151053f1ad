// The solver over ranks, which are threads here: the same bits as on one, whatever crosses their borders.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

#include "apps/mpm/agreement.h"
#include "apps/mpm/rank_solver.h"
#include "apps/scene/scene.h"
#include "core/error.h"
#include "core/local_ranks.h"

namespace coppice::mpm {
namespace {

using Program = std::function<void(Solver&)>;
using Together = std::function<void(SolverPart&, std::span<const std::byte>)>;

void run_on(int n_ranks, const scene::SceneConfig& scene, const Program& program,
            const Together& together = {}, const char* device = "cpu") {
  const auto make_device = [&] {
    return device == std::string("cpu") ? Device::cpu(1) : Device::named(device);
  };
  if (n_ranks == 0) return program(*Solver::create(make_device(), scene));
  run_on_ranks(n_ranks, [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(std::move(link));
    if (cluster.rank() != 0)
      return follow(make_device(), scene, {.cluster = cluster, .act_together = together});
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

void expect_same(const ParticleSnapshot& a, const ParticleSnapshot& b) {
  expect_bits(a.position, b.position, "position");
  expect_bits(a.velocity, b.velocity, "velocity");
  expect_bits(a.affine, b.affine, "affine");
  expect_bits(a.deformation, b.deformation, "deformation");
  expect_bits(a.stress, b.stress, "stress");
  expect_bits(a.mass, b.mass, "mass");
  expect_bits(a.volume_ratio, b.volume_ratio, "volume_ratio");
  expect_bits(a.material_scalar, b.material_scalar, "material_scalar");
  expect_bits(a.material, b.material, "material");
  expect_bits(a.emitter, b.emitter, "emitter");
}

void expect_same(const Seen& a, const Seen& b) {
  expect_same(a.particles, b.particles);
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

// Appends a share of the rows to those before it.
void append(ParticleSnapshot& to, const ParticleSnapshot& share) {
  const auto put = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  put(to.position, share.position), put(to.velocity, share.velocity), put(to.affine, share.affine);
  put(to.deformation, share.deformation), put(to.stress, share.stress), put(to.mass, share.mass);
  put(to.material_scalar, share.material_scalar), put(to.volume_ratio, share.volume_ratio);
  put(to.emitter, share.emitter), put(to.material, share.material);
}

// A rank has this of a frame.
struct Share {
  ParticleSnapshot rows;
  std::vector<int32_t> blocks;  // origins
};

// Has all ranks take their rows, and their blocks; returns what each has.
class Shares {
 public:
  explicit Shares(int n_ranks) : shares_(static_cast<size_t>(n_ranks)) {}
  void take(SolverPart& own, std::span<const std::byte> message) {
    std::vector<uint64_t> ends(message.size() / sizeof(uint64_t));
    std::memcpy(ends.data(), message.data(), message.size());
    const auto rank = static_cast<size_t>(own.cluster() ? own.cluster()->rank() : 0);
    Share& share = shares_[rank];
    share.rows = own.wait_rows({.stress = true}, ends);
    EXPECT_EQ(share.rows.position.size(), ends[rank] - (rank == 0 ? 0 : ends[rank - 1])) << rank;
    share.blocks = own.wait_own_blocks({}).origins;
    if (own.frame() > 0) {
      const auto owner_of = own.wait_owners();
      for (size_t b = 0; b < share.blocks.size(); b += 3)
        EXPECT_EQ(owner_of(Vec3i(&share.blocks[b])), static_cast<int>(rank));
    }
    if (own.cluster()) own.cluster()->wait_all();  // the first one looks at what all have
  }
  std::vector<Share>& wait_take(Solver& solver, const std::vector<uint64_t>& ends) {
    const auto message = std::as_bytes(std::span(ends));
    solver.wait_together(message, [&](SolverPart& own) { take(own, message); });
    return shares_;
  }

 private:
  std::vector<Share> shares_;
};

// Nobody has more than its share, and the shares in a row are what one process has: where all ids are there,
// where particles have left, at the start, and when all are gone.
TEST_P(MpmRanks, ShareOutTheParticlesInTheOrderOfIds) {
  const Case& c = GetParam();
  const scene::SceneConfig scene = parse(c);
  const auto for_frames = [&](Solver& solver, const auto& see) {
    see();
    for (int frame = 1; frame <= c.frames; ++frame) {
      solver.wait_advance_frame();
      if (frame % (c.frames / 2) == 0) see();
    }
    solver.wait_cut({scene.domain.min.cast<float>(), scene.domain.max.cast<float>(), 10});
    see();
  };
  std::vector<ParticleSnapshot> expected;
  std::vector<size_t> n_blocks;
  run_on(0, scene, [&](Solver& solver) {
    for_frames(solver, [&] {
      expected.push_back(solver.wait_snapshot_with({.stress = true}));
      n_blocks.push_back(solver.wait_density().origins.size());
    });
  });
  EXPECT_EQ(expected.back().position.size(), 0u);
  for (const int n_ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(fmt::format("{} ranks", n_ranks));
    Shares shares(n_ranks);
    size_t at = 0;
    const auto program = [&](Solver& solver) {
      for_frames(solver, [&] {
        const uint64_t n = solver.num_particles(), m = static_cast<uint64_t>(n_ranks);
        // Even ones, and such that the first rank gets none and the last few.
        std::vector<uint64_t> even, uneven;
        for (uint64_t r = 1; r <= m; ++r) {
          even.push_back(n * r / m);
          uneven.push_back(r == m ? n : r == 1 ? 0 : n - std::min<uint64_t>(n, 7));
        }
        for (const std::vector<uint64_t>& ends : {even, uneven}) {
          ParticleSnapshot all;
          size_t blocks = 0;
          for (const Share& share : shares.wait_take(solver, ends))
            append(all, share.rows), blocks += share.blocks.size();
          expect_same(expected[at], all);
          EXPECT_EQ(blocks, n_blocks[at]);
        }
        ++at;
      });
    };
    run_on(n_ranks, scene, program, [&](SolverPart& own, auto message) { shares.take(own, message); });
    if (HasFailure()) break;
  }
}

TEST(MpmRanksTogether, AnErrorOfOneRankIsOneOfAllAndTheyGoOn) {
  const scene::SceneConfig scene = parse(kJelly);
  const auto act = [](SolverPart& own) {
    wait_agreed(*own.cluster(), [&] {
      if (own.cluster()->rank() > 0)
        throw Error(ErrorCode::kIo, fmt::format("disk {} is full", own.cluster()->rank()));
    });
  };
  run_on(
      3, scene,
      [&](Solver& solver) {
        solver.wait_advance_frame();
        try {
          solver.wait_together({}, act);
          FAIL() << "nobody failed";
        } catch (const Error& error) {
          EXPECT_EQ(error.message(), "rank 1: disk 1 is full");
          EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
        }
        solver.wait_advance_frame();
        EXPECT_EQ(solver.frame(), 2);
      },
      [&](SolverPart& own, auto) { act(own); });
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
