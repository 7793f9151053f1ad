// Particle sampling: counts, strata, independence of threads, and the random numbers underneath.
#include <fmt/format.h>
#include <tbb/global_control.h>

#include <cmath>
#include <limits>
#include <map>

#include "apps/geometry/philox.h"
#include "apps/geometry/sampling.h"
#include "apps/geometry/shapes_mesh.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

using Cell = std::array<int, 3>;

Cell cell_of(const Vec3f& p, float dx) {
  return {static_cast<int>(std::floor(p[0] / dx)), static_cast<int>(std::floor(p[1] / dx)),
          static_cast<int>(std::floor(p[2] / dx))};
}

std::map<Cell, int> count_per_cell(const std::vector<Vec3f>& points, float dx) {
  std::map<Cell, int> counts;
  for (const Vec3f& p : points) ++counts[cell_of(p, dx)];
  return counts;
}

TEST(Philox, GivesThePublishedNumbers) {
  // Known answers that the authors publish with the generator, philox4x32 with 10 rounds.
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformFloatsStayBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_LT(uniform_float(0xffffffff), 1.0f);
}

TEST(Sampling, PutsOneParticleIntoEachSubCell) {
  // A box that ends on cell borders, powers of two so that they are exact; negative coordinates too.
  const auto particles = sample_particles(BoxShape({-1, -0.5f, 0}, {0.5f, 0.5f, 0.5f}), {3, 0.25f, 8, 42});
  ASSERT_EQ(particles.size(), 6u * 4 * 2 * 8);
  const auto counts = count_per_cell(particles, 0.125f);
  EXPECT_EQ(counts.size(), particles.size());
  const auto flat = sample_particles(BoxShape({-1, -0.5f, -1}, {0.5f, 0.5f, 1}), {2, 0.25f, 9, 42});
  ASSERT_EQ(flat.size(), 6u * 4 * 9);
  for (const Vec3f& p : flat) EXPECT_EQ(p[2], 0.0f);
  std::map<Cell, int> thirds;  // a third of a cell is no power of two: count by the position within the cell
  for (const Vec3f& p : flat) ++thirds[cell_of(p * 12 + Vec3f::Constant(1e-4f), 1)];
  EXPECT_GE(thirds.size(), flat.size() * 99 / 100);
}

TEST(Sampling, PutsTheAskedNumberIntoEachCellWhenItIsNoPerfectPower) {
  for (const int per_cell : {1, 3, 6, 7, 10}) {
    const auto particles = sample_particles(BoxShape({0, 0, 0}, {2, 2, 2}), {3, 0.25f, per_cell, 1});
    const auto counts = count_per_cell(particles, 0.25f);
    EXPECT_EQ(counts.size(), 512u);
    for (const auto& [cell, n] : counts) EXPECT_EQ(n, per_cell);
  }
}

TEST(Sampling, LeavesNoSubCellOutMoreOftenThanOthers) {
  // 6 of 8 sub-cells: each is taken in 3/4 of the cells.
  const int n_cells = 16 * 16 * 16;
  const auto particles = sample_particles(BoxShape({0, 0, 0}, {16, 16, 16}), {3, 1.0f, 6, 5});
  std::map<Cell, int> taken;
  for (const Vec3f& p : particles) {
    const Cell c = cell_of(p, 0.5f);
    ++taken[{c[0] & 1, c[1] & 1, c[2] & 1}];
  }
  const double deviation = std::sqrt(n_cells * 0.75 * 0.25);
  for (const auto& [sub, n] : taken) EXPECT_NEAR(n, 0.75 * n_cells, 4 * deviation) << "seed 5";
}

TEST(Sampling, FillsAShapesVolume) {
  const float dx = 0.05f;
  const auto particles = sample_particles(SphereShape({0, 0, 0}, 1), {3, dx, 8, 3});
  const double expected = 4.0 / 3.0 * M_PI * 8 / std::pow(dx, 3);
  // Only the strata that the surface cuts are random: about area / stratum_width^2 of them, each +-1/2.
  const double strata = 4 * M_PI / std::pow(dx / 2, 2);
  EXPECT_NEAR(particles.size(), expected, 4 * 0.5 * std::sqrt(strata)) << "seed 3";
  Vec3d mean = Vec3d::Zero();
  for (const Vec3f& p : particles) {
    EXPECT_LE(p.norm(), 1.0f);
    mean += p.cast<double>();
  }
  EXPECT_LT((mean / static_cast<double>(particles.size())).norm(), 2e-3);
}

TEST(Sampling, DoesNotDependOnTheNumberOfThreads) {
  const SphereShape sphere({0.3f, 0.2f, 0.1f}, 0.9f);
  const SamplingOptions options{3, 0.04f, 7, 0x123456789abcdefull};
  std::vector<std::vector<Vec3f>> runs;
  for (const int threads : {1, 2, 4}) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    runs.push_back(sample_particles(sphere, options));
  }
  ASSERT_GT(runs[0].size(), 1000u);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
}

TEST(Sampling, FollowsTheSeedInBothOfItsWords) {
  const BoxShape box({0, 0, 0}, {1, 1, 1});
  const auto with_seed = [&](uint64_t seed) { return sample_particles(box, {3, 0.25f, 8, seed}); };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
  EXPECT_NE(with_seed(1), with_seed(1 + (uint64_t{1} << 32)));
}

TEST(Sampling, GivesACellTheSamePointsWhateverTheShape) {
  const auto whole = sample_particles(BoxShape({0, 0, 0}, {4, 4, 4}), {3, 1, 8, 9});
  const auto part = sample_particles(BoxShape({1, 1, 1}, {3, 3, 3}), {3, 1, 8, 9});
  std::vector<Vec3f> inner;
  for (const Vec3f& p : whole) {
    if (BoxShape({1, 1, 1}, {3, 3, 3}).contains(p)) inner.push_back(p);
  }
  EXPECT_EQ(part, inner);
}

TEST(Sampling, RefusesOptionsWithoutSense) {
  const BoxShape box({0, 0, 0}, {1, 1, 1});
  const auto refuses = [&](const SamplingOptions& options, const std::string& part) {
    expect_error(ErrorCode::kInvalidArgument, {part}, [&] { sample_particles(box, options); });
  };
  refuses({4, 0.1f, 8, 0}, "4 dimensions, expected 2 or 3");
  refuses({3, 0, 8, 0}, "dx is 0");
  refuses({3, -1, 8, 0}, "dx is -1");
  refuses({3, std::numeric_limits<float>::quiet_NaN(), 8, 0}, "dx is nan");
  refuses({3, 0.1f, 0, 0}, "particles_per_cell is 0, expected 1 to 4096");
  refuses({3, 1e-4f, 8, 0}, "a shape of 1 m would have over 2^31 particles in grid cells of 0.0001 m");
  refuses({2, 1e-30f, 8, 0}, "over 2^31 particles");
}

TEST(Sampling, FillsTheScans) {
  if (data_folder().empty()) GTEST_SKIP() << "no meshes: set COPPICE_DATA_DIR to the folder above meshes/";
  for (const char* name : {"spot.obj", "stanford-bunny.obj"}) {
    TriangleMesh mesh = load_mesh(data_folder() + "/meshes/" + name);
    fit_mesh_into(mesh, {Vec3f(0, 0, 0), Vec3f(1, 1, 1)});
    const double volume = signed_volume(mesh);
    const LogCapture log;
    const auto particles = sample_particles(MeshShape(mesh, name), {3, 0.05f, 8, 11});
    // The strata that the surface cuts are the uncertainty, and the holes of the scan; 3 % covers both.
    const double expected = volume * 8 / std::pow(0.05, 3);
    EXPECT_NEAR(particles.size(), expected, 0.03 * expected) << name;
    EXPECT_EQ(log.lines.size(), open_edge_count(mesh) > 0 ? 1u : 0u) << name;
  }
}

}  // namespace
}  // namespace coppice
