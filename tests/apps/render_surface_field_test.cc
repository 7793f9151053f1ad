// The field whose level set is the surface of water and jelly: height, flatness, volume, spray. Needs no
// OpenGL.
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "apps/render/particle_shading.h"
#include "apps/render/particle_surface.h"
#include "tests/apps/particle_blocks.h"

namespace coppice::render {
namespace {

constexpr float kSpacing = 1.0f / 40;

class ParticleSurface : public testing::Test {
 protected:
  void SetUp() override {
    scene_.domain = {Vec3f::Zero(), Vec3f::Ones()};
    scene_.radius_m = kRadiusPerSpacing * kSpacing;
  }
  void add(const std::vector<Vec3f>& positions, Look look) {
    positions_.insert(positions_.end(), positions.begin(), positions.end());
    looks_.insert(looks_.end(), positions.size(), look);
  }
  const ParticleSurfaces& make() {
    scene_.positions = positions_;
    scene_.looks = looks_;
    colors_ = compute_particle_colors(scene_);
    surfaces_ = make_particle_surfaces(scene_, colors_);
    bricks_.clear();
    for (size_t b = 0; b < surfaces_.volume.size(); ++b) {
      const CellCoord& o = surfaces_.volume.origins[b];
      bricks_[{o.x, o.y, o.z}] = b;
    }
    return surfaces_;
  }
  float cell_value(const Vec3i& cell) const {
    const auto found = bricks_.find({cell.x() & ~7, cell.y() & ~7, cell.z() & ~7});
    if (found == bricks_.end()) return 0;
    const int i = ((cell.x() & 7) * 9 + (cell.y() & 7)) * 9 + (cell.z() & 7);
    float value;
    std::memcpy(&value,
                surfaces_.volume.values_of(found->second).data() + static_cast<size_t>(i) * sizeof(float),
                sizeof(float));
    return value;
  }
  float value_at(int field, const Vec3f& world) const {
    const Vec3f at =
        world / surfaces_.cell_m + surfaces_.fields[static_cast<size_t>(field)].shift - Vec3f::Constant(0.5f);
    const Vec3i low = at.array().floor().cast<int>();
    const Vec3f part = at - low.cast<float>();
    float sum = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const Vec3i step(corner & 1, corner >> 1 & 1, corner >> 2);
      float weight = 1;
      for (int a = 0; a < 3; ++a) weight *= step[a] != 0 ? part[a] : 1 - part[a];
      sum += weight * cell_value(low + step);
    }
    return sum;
  }
  // Where the surface is above a point of the floor, from above.
  float height(int field, float x, float z) const {
    for (float y = 1.0f; y > 0; y -= 0.02f * kSpacing)
      if (value_at(field, Vec3f(x, y, z)) >= kSurfaceThreshold) return y;
    return 0;
  }

  RenderScene scene_;
  std::vector<Vec3f> positions_;
  std::vector<Look> looks_;
  std::vector<uint32_t> colors_;
  ParticleSurfaces surfaces_;
  std::map<std::array<int, 3>, size_t> bricks_;
};

// Particles that are up to half a spacing off their places, each for itself, make a surface that is flat to
// a tenth of one, where their body ends, up to the walls.
TEST_F(ParticleSurface, RestingWaterIsFlatAndAsHighAsItsParticles) {
  for (const float jitter : {0.0f, 0.5f}) {
    positions_.clear(), looks_.clear();
    const float top = 16 * kSpacing;
    add(fill_box({Vec3f::Zero(), Vec3f(1, top, 1)}, kSpacing, jitter), Look::kWater);
    make();
    double sum = 0, squares = 0;
    int n = 0;
    for (float x = 0.001f; x < 1; x += 0.0713f) {
      for (float z = 0.001f; z < 1; z += 0.0617f, ++n) {
        const double off = (height(ParticleSurfaces::kWater, x, z) - top) / kSpacing;
        EXPECT_LT(std::abs(off), 0.5) << "spacings, at " << x << ", " << z << ", jitter " << jitter;
        sum += off, squares += off * off;
      }
    }
    const double mean = sum / n;
    EXPECT_NEAR(mean, 0, 0.25) << "jitter " << jitter;
    EXPECT_LT(std::sqrt(squares / n - mean * mean), 0.1) << "jitter " << jitter;
  }
}

TEST_F(ParticleSurface, ADropHasTheVolumeOfItsParticles) {
  const float radius = 6 * kSpacing;
  const std::vector<Vec3f> ball = fill_ball(Vec3f::Constant(0.5f), radius, kSpacing, 0.3f);
  add(ball, Look::kJelly);
  make();
  double volume = 0;
  const float step = 0.5f * kSpacing;
  for (float x = 0.2f; x < 0.8f; x += step)
    for (float y = 0.2f; y < 0.8f; y += step)
      for (float z = 0.2f; z < 0.8f; z += step)
        if (value_at(ParticleSurfaces::kJelly, Vec3f(x, y, z)) >= kSurfaceThreshold)
          volume += std::pow(step, 3);
  const double expected = static_cast<double>(ball.size()) * std::pow(kSpacing, 3);
  EXPECT_NEAR(volume / expected, 1, 0.12);
}

// Seen to fail: all of the water was spray, for the radius is that of the first emitter's particles.
TEST_F(ParticleSurface, BodiesMayHaveParticlesOfOtherSizes) {
  const float wide = 2 * kSpacing, radius = 10 * kSpacing;
  const std::vector<Vec3f> ball = fill_ball(Vec3f::Constant(0.5f), radius, wide, 0.3f);
  add(ball, Look::kWater);
  add(fill_ball(Vec3f(0.1f, 0.1f, 0.1f), 3 * kSpacing, kSpacing, 0.3f), Look::kJelly);
  scene_.body_spacing_m = {wide, kSpacing};
  make();
  EXPECT_FLOAT_EQ(surfaces_.cell_m, kSpacing / 1.25f);
  for (size_t i = 0; i < ball.size(); ++i) EXPECT_EQ(surfaces_.is_enclosed[i], 1) << i;
  double volume = 0;
  const float step = 0.5f * kSpacing;
  for (float x = 0.2f; x < 0.8f; x += step)
    for (float y = 0.2f; y < 0.8f; y += step)
      for (float z = 0.2f; z < 0.8f; z += step)
        if (value_at(ParticleSurfaces::kWater, Vec3f(x, y, z)) >= kSurfaceThreshold)
          volume += std::pow(step, 3);
  EXPECT_NEAR(volume / (static_cast<double>(ball.size()) * std::pow(wide, 3)), 1, 0.15);
}

TEST_F(ParticleSurface, SprayIsLeftOutAndBodiesAreEnclosed) {
  add(fill_ball(Vec3f::Constant(0.5f), 6 * kSpacing, kSpacing, 0.3f), Look::kWater);
  const size_t body = positions_.size();
  add({Vec3f(0.1f, 0.9f, 0.1f), Vec3f(0.1f, 0.9f - 3 * kSpacing, 0.1f), Vec3f(0.9f, 0.5f, 0.2f)},
      Look::kWater);
  const std::vector<uint8_t> enclosed = make().is_enclosed;
  ASSERT_EQ(enclosed.size(), body + 3);
  for (size_t i = 0; i < body; ++i) EXPECT_EQ(enclosed[i], 1) << i;
  for (size_t i = body; i < enclosed.size(); ++i) EXPECT_EQ(enclosed[i], 0) << i;
}

// A solver's walls give way a little: such particles are no spray on the cut of the body.
TEST_F(ParticleSurface, ParticlesPressedIntoAWallAreEnclosed) {
  add(fill_box({Vec3f::Zero(), Vec3f(1, 12 * kSpacing, 1)}, kSpacing, 0.3f), Look::kWater);
  for (Vec3f& p : positions_)
    if (p.z() > 1 - kSpacing) p.z() += 0.6f * kSpacing;
  const std::vector<uint8_t> enclosed = make().is_enclosed;
  size_t beyond = 0;
  for (size_t i = 0; i < enclosed.size(); ++i) {
    beyond += positions_[i].z() > 1;
    EXPECT_EQ(enclosed[i], 1) << positions_[i].transpose();
  }
  EXPECT_GT(beyond, 100u);
}

// Their fields stand side by side: what one has, the other does not see.
TEST_F(ParticleSurface, WaterAndJellyAreKeptApart) {
  const Vec3f at_water(0.3f, 0.5f, 0.5f), at_jelly(0.7f, 0.5f, 0.5f);
  add(fill_ball(at_water, 5 * kSpacing, kSpacing, 0.2f), Look::kWater);
  add(fill_ball(at_jelly, 5 * kSpacing, kSpacing, 0.2f), Look::kJelly);
  const ParticleSurfaces& s = make();
  EXPECT_TRUE(std::is_sorted(s.volume.origins.begin(), s.volume.origins.end()));
  EXPECT_GT(value_at(ParticleSurfaces::kWater, at_water), 0.8f);
  EXPECT_GT(value_at(ParticleSurfaces::kJelly, at_jelly), 0.8f);
  EXPECT_LT(value_at(ParticleSurfaces::kWater, at_jelly), 0.01f);
  EXPECT_LT(value_at(ParticleSurfaces::kJelly, at_water), 0.01f);
}

TEST_F(ParticleSurface, OtherMaterialsAndFlatScenesHaveNone) {
  add(fill_ball(Vec3f::Constant(0.5f), 5 * kSpacing, kSpacing, 0.2f), Look::kSnow);
  EXPECT_TRUE(make().is_empty());
  std::fill(looks_.begin(), looks_.end(), Look::kWater);
  EXPECT_FALSE(make().is_empty());
  scene_.dim = 2;
  EXPECT_TRUE(make().is_empty());
}

TEST_F(ParticleSurface, DoesNotDependOnTheNumberOfThreads) {
  add(fill_ball(Vec3f::Constant(0.5f), 8 * kSpacing, kSpacing, 0.4f), Look::kWater);
  std::optional<ParticleSurfaces> one;
  tbb::task_arena(1).execute([&] { one = make(); });
  const ParticleSurfaces& many = make();
  EXPECT_EQ(one->volume.origins, many.volume.origins);
  EXPECT_EQ(one->volume.values, many.volume.values);
  EXPECT_EQ(one->is_enclosed, many.is_enclosed);
}

TEST_F(ParticleSurface, JellyKeepsItsColoursApart) {
  const std::vector<Rgb> palette = {Rgb(1, 0, 0), Rgb(0, 0, 1)};
  std::vector<uint8_t> materials;
  for (const float x : {0.2f, 0.8f}) {
    add(fill_ball(Vec3f(x, 0.5f, 0.5f), 5 * kSpacing, kSpacing, 0.2f), Look::kJelly);
    materials.resize(positions_.size(), x < 0.5f ? 0 : 1);
  }
  scene_.palette = palette;
  scene_.materials = materials;
  const SurfaceColors& colors = make().jelly_colors;
  const auto color_at = [&](const Vec3f& p) {
    const Vec3i c = ((p - colors.origin) / colors.cell_m).cast<int>();
    const size_t i = static_cast<size_t>((c.z() * colors.size.y() + c.y()) * colors.size.x() + c.x());
    return std::array<int, 4>{colors.texels[4 * i], colors.texels[4 * i + 1], colors.texels[4 * i + 2],
                              colors.texels[4 * i + 3]};
  };
  EXPECT_EQ(color_at(Vec3f(0.2f, 0.5f, 0.5f)), (std::array{255, 0, 0, 255}));
  EXPECT_EQ(color_at(Vec3f(0.8f, 0.5f, 0.5f)), (std::array{0, 0, 255, 255}));
  EXPECT_EQ(color_at(Vec3f(0.5f, 0.5f, 0.5f))[3], 0);
}

TEST(Grains, AreManySmallAndNearTheirParticle) {
  RenderScene scene;
  scene.domain = {Vec3f::Zero(), Vec3f::Ones()};
  scene.radius_m = kRadiusPerSpacing * kSpacing;
  const std::vector<Vec3f> positions = {Vec3f(0.2f, 0.5f, 0.5f), Vec3f(0.8f, 0.5f, 0.5f)};
  const std::vector<Look> looks = {Look::kSnow, Look::kSpheres};
  scene.positions = positions;
  scene.looks = looks;
  const ParticleShading shading = compute_particle_shading(scene, compute_particle_colors(scene));
  size_t grains = 0;
  for (const PackedParticle& p : shading.particles) {
    const uint32_t look = p.color >> 24 & 7u, radius = (p.color >> 27) + 1;
    if (look == static_cast<uint32_t>(Look::kSpheres)) {
      EXPECT_EQ(radius, 32u);
      EXPECT_EQ(p.position, positions[1]);
      continue;
    }
    ++grains;
    EXPECT_LE(radius, 20u);
    EXPECT_LT((p.position - positions[0]).cwiseAbs().maxCoeff(), kSpacing);
  }
  EXPECT_GE(grains, 8u);
}

}  // namespace
}  // namespace coppice::render
