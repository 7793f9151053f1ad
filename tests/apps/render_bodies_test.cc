// Water, jelly, grains and shadows in pictures for files. Needs EGL.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "apps/render/renderer.h"
#include "tests/apps/image_blobs.h"
#include "tests/apps/make_or_skip.h"
#include "tests/apps/particle_blocks.h"

namespace coppice::render {
namespace {

constexpr int kSide = 240;
constexpr float kSpacing = 1.0f / 40;

class RenderBodies : public testing::Test {
 protected:
  void SetUp() override {
    make_or_skip(renderer_, kSide, kSide);
    if (!renderer_) return;
    scene_.domain = {Vec3f::Zero(), Vec3f::Ones()};
    scene_.radius_m = kRadiusPerSpacing * kSpacing;
    scene_.palette = kPrimaries;
    look_from_the_front();
  }
  // A pixel is 1.2 / 240 m = a fifth of a spacing.
  void look_from_the_front() {
    scene_.camera.projection = Projection::kOrthographic;
    scene_.camera.position = Vec3f(0.5f, 0.5f, 5);
    scene_.camera.look_at = Vec3f::Constant(0.5f);
    scene_.camera.height_m = 1.2f;
  }
  void look_from_above() {
    scene_.camera = {};
    scene_.camera.position = Vec3f(0.5f, 2.2f, 2.4f);
    scene_.camera.look_at = Vec3f(0.5f, 0.2f, 0.5f);
  }
  void add(const std::vector<Vec3f>& positions, Look look, int material = 0) {
    positions_.insert(positions_.end(), positions.begin(), positions.end());
    looks_.insert(looks_.end(), positions.size(), look);
    materials_.insert(materials_.end(), positions.size(), static_cast<uint8_t>(material));
  }
  void clear() { positions_.clear(), looks_.clear(), materials_.clear(); }
  Image render() {
    scene_.positions = positions_, scene_.looks = looks_, scene_.materials = materials_;
    return renderer_->render(scene_);
  }
  Rgba8 seen(const Image& image, const Vec3f& world) const {
    const Vec2f at = scene_.camera.pixel_from_world(world, kSide, kSide);
    return image.pixel(static_cast<int>(at.x()), static_cast<int>(at.y()));
  }
  static int difference(const Rgba8& a, const Rgba8& b) {
    return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
  }
  static int sum(const Rgba8& c) { return c[0] + c[1] + c[2]; }

  std::unique_ptr<Renderer> renderer_;
  RenderScene scene_;
  std::vector<Vec3f> positions_;
  std::vector<Look> looks_;
  std::vector<uint8_t> materials_;
};

TEST_F(RenderBodies, RestingWaterEndsInALineAtTheHeightOfItsParticles) {
  const Image empty = render();
  const float top = 16 * kSpacing;
  add(fill_box({Vec3f::Zero(), Vec3f(1, top, 1)}, kSpacing, 0.5f), Look::kWater);
  const Image image = render();
  const float expected = scene_.camera.pixel_from_world(Vec3f(0.5f, top, 1), kSide, kSide).y();
  const int left = static_cast<int>(scene_.camera.pixel_from_world(Vec3f::Zero(), kSide, kSide).x()) + 2;
  for (int x = left; x < kSide - left; ++x) {
    int y = 0;
    while (y < kSide && difference(image.pixel(x, y), empty.pixel(x, y)) < 12) ++y;
    EXPECT_NEAR(static_cast<float>(y), expected, 2.5f) << "column " << x;
  }
}

// From above it is one even colour: neither beads nor dents.
TEST_F(RenderBodies, RestingWaterHasNoBeads) {
  const auto roughness = [&](Look look) {
    clear();
    look_from_above();
    add(fill_box({Vec3f::Zero(), Vec3f(1, 16 * kSpacing, 1)}, kSpacing, 0.4f), look, 2);
    const Image image = render();
    double total = 0;
    int n = 0;
    for (int y = 90; y < 130; ++y) {
      for (int x = 90; x < 150; ++x, ++n)
        total += std::abs(sum(image.pixel(x, y)) - sum(image.pixel(x + 2, y)));
    }
    return total / n;
  };
  const double spheres = roughness(Look::kSpheres);
  EXPECT_LT(roughness(Look::kWater), 0.1 * spheres);
  EXPECT_LT(roughness(Look::kJelly), 0.1 * spheres);
}

TEST_F(RenderBodies, ADropIsAClosedDiscOfItsSize) {
  const Image empty = render();
  const float radius = 7 * kSpacing;
  for (const Look look : {Look::kWater, Look::kJelly}) {
    clear();
    add(fill_ball(Vec3f(0.5f, 0.6f, 0.5f), radius, kSpacing, 0.3f), look);
    const Image image = render();
    // Above the floor, where there is no shadow.
    int area = 0, gaps = 0;
    for (int y = 0; y < kSide * 2 / 3; ++y) {
      int first = kSide, last = -1, row = 0;
      for (int x = 0; x < kSide; ++x) {
        if (difference(image.pixel(x, y), empty.pixel(x, y)) < 3) continue;
        first = std::min(first, x), last = x, ++row;
      }
      area += row;
      if (row > 0) gaps += last - first + 1 - row;
    }
    const double radius_px = radius / 1.2 * kSide;
    EXPECT_NEAR(area / (M_PI * radius_px * radius_px), 1, 0.12) << static_cast<int>(look);
    EXPECT_LE(gaps, area / 50) << static_cast<int>(look);
  }
}

TEST_F(RenderBodies, WhatStandsInWaterIsSeenAndTinted) {
  const Vec3f middle(0.5f, 0.25f, 0.75f);
  add(fill_ball(middle, 4 * kSpacing, kSpacing, 0), Look::kSpheres, 0);
  const Rgba8 dry = seen(render(), middle);
  ASSERT_TRUE(is_reddish(dry));
  const std::vector<Vec3f> water =
      fill_with_particles({Vec3f::Zero(), Vec3f(1, 20 * kSpacing, 1)}, kSpacing, 0.3f,
                          [&](const Vec3f& p) { return (p - middle).norm() > 5 * kSpacing; });
  add(water, Look::kWater, 2);
  const Rgba8 wet = seen(render(), middle);
  clear();
  add(fill_box({Vec3f::Zero(), Vec3f(1, 20 * kSpacing, 1)}, kSpacing, 0.3f), Look::kWater, 2);
  const Rgba8 alone = seen(render(), middle);
  EXPECT_GT(wet[0], alone[0] + 15) << "the red body is lost";
  EXPECT_GT(difference(wet, dry), 40) << "the water has no colour";
  // Water takes red away first.
  EXPECT_LT(static_cast<double>(wet[0]) / (wet[2] + 1), 0.75 * dry[0] / (dry[2] + 1));
}

// More water takes more away.
TEST_F(RenderBodies, WaterIsDeeperInColourWhereItIsThicker) {
  look_from_above();
  std::vector<double> warmth;
  for (const int layers : {3, 8, 16}) {
    clear();
    add(fill_box({Vec3f::Zero(), Vec3f(1, static_cast<float>(layers) * kSpacing, 1)}, kSpacing, 0.3f),
        Look::kWater);
    const Rgba8 c = seen(render(), Vec3f(0.5f, static_cast<float>(layers) * kSpacing, 0.5f));
    warmth.push_back(static_cast<double>(c[0]) / c[2]);
  }
  EXPECT_GT(warmth[0], 1.1 * warmth[1]);
  EXPECT_GT(warmth[1], 1.1 * warmth[2]);
}

TEST_F(RenderBodies, SolidsStandInFrontOfAndBehindWater) {
  add(fill_ball(Vec3f(0.5f, 0.5f, 0.5f), 6 * kSpacing, kSpacing, 0.2f), Look::kWater, 2);
  const Image without = render();
  RenderCollider ball;
  ball.radius_m = 0.08f;
  ball.center = Vec3f(0.5f, 0.5f, 0.9f);
  scene_.colliders = {ball};
  const Rgba8 in_front = seen(render(), ball.center);
  clear();
  const Rgba8 alone = seen(render(), ball.center);
  EXPECT_LE(difference(in_front, alone), 4) << "water in front of a body that is nearer";
  EXPECT_GT(difference(in_front, seen(without, ball.center)), 15);
}

TEST_F(RenderBodies, SprayIsDrawnAsSpheres) {
  const Vec3f place(0.5f, 0.7f, 0.5f);
  const Image empty = render();
  add({place}, Look::kWater, 2);
  scene_.radius_m = 0.1f;  // a drop is half as large as a particle
  const Image image = render();
  int area = 0;
  for (int y = 0; y < kSide * 2 / 3; ++y)
    for (int x = 0; x < kSide; ++x) area += difference(image.pixel(x, y), empty.pixel(x, y)) >= 3;
  const double radius_px = 0.05 / 1.2 * kSide;
  EXPECT_NEAR(std::sqrt(area / M_PI), radius_px, 1);
  EXPECT_GT(difference(seen(image, place), seen(empty, place)), 15);
}

TEST_F(RenderBodies, ShadowsFallBehindBodiesAndNowhereElse) {
  look_from_above();
  // So that both pictures have the same bounds, and shadow maps.
  add({Vec3f(0.02f, 0.02f, 0.02f), Vec3f(0.98f, 0.9f, 0.98f)}, Look::kSpheres);
  const Image before = render();
  const Vec3f center(0.5f, 0.3f, 0.5f);
  const Vec3f to_light = Vec3f(-0.42f, 1, 0.5f).normalized();
  const Vec3f shadow = center - to_light * (center.y() / to_light.y());
  for (const Look look : {Look::kSpheres, Look::kJelly, Look::kSnow}) {
    positions_.resize(2), looks_.resize(2), materials_.resize(2);
    add(fill_ball(center, 4 * kSpacing, kSpacing, 0), look);
    const Image after = render();
    EXPECT_LT(sum(seen(after, shadow)), 0.75 * sum(seen(before, shadow))) << static_cast<int>(look);
    for (const Vec3f& lit : {Vec3f(0.15f, 0, 0.8f), Vec3f(0.85f, 0, 0.75f), Vec3f(0.1f, 0, 0.3f)})
      EXPECT_LE(difference(seen(after, lit), seen(before, lit)), 6) << lit.transpose();
    // Its edge is soft: along a line through it there are several steps between dark and light.
    int steps = 0;
    for (int i = 0; i < 60; ++i) {
      const Rgba8 c = seen(after, shadow + Vec3f(0.005f * static_cast<float>(i), 0, 0));
      const double light = static_cast<double>(sum(c)) / sum(seen(before, shadow));
      steps += light > 0.7 && light < 0.95;
    }
    EXPECT_GE(steps, 4) << static_cast<int>(look);
  }
}

// Water's shadow is tinted light, not darkness.
TEST_F(RenderBodies, WaterLetsLightThrough) {
  look_from_above();
  const Vec3f center(0.5f, 0.3f, 0.5f);
  const Vec3f to_light = Vec3f(-0.42f, 1, 0.5f).normalized();
  const Vec3f shadow = center - to_light * (center.y() / to_light.y());
  const auto light = [&](Look look) {
    clear();
    add(fill_ball(center, 4 * kSpacing, kSpacing, 0), look);
    return sum(seen(render(), shadow));
  };
  EXPECT_GT(light(Look::kWater), 1.15 * light(Look::kJelly));
}

// Snow that no water is near looks to the bit as without it.
TEST_F(RenderBodies, WaterChangesNothingElse) {
  look_from_above();
  const std::vector<Vec3f> left = fill_ball(Vec3f(0.15f, 0.2f, 0.3f), 4 * kSpacing, kSpacing, 0.2f);
  const std::vector<Vec3f> right = fill_ball(Vec3f(0.85f, 0.7f, 0.8f), 4 * kSpacing, kSpacing, 0.2f);
  const auto draw = [&](bool with_water) {
    clear();
    add(left, Look::kSnow), add(right, Look::kSand);
    if (with_water) add(fill_ball(Vec3f(0.5f, 0.2f, 0.7f), 3 * kSpacing, kSpacing, 0.2f), Look::kWater);
    return render();
  };
  const Image without = draw(false), with = draw(true);
  int changed = 0;
  for (const std::vector<Vec3f>* heap : {&left, &right})
    for (const Vec3f& p : *heap) changed += seen(without, p) != seen(with, p);
  EXPECT_EQ(changed, 0);
  EXPECT_GT(difference(seen(without, Vec3f(0.5f, 0.2f, 0.7f)), seen(with, Vec3f(0.5f, 0.2f, 0.7f))), 5);
}

TEST_F(RenderBodies, AreTheSameFromPictureToPicture) {
  look_from_above();
  add(fill_ball(Vec3f(0.4f, 0.3f, 0.5f), 5 * kSpacing, kSpacing, 0.3f), Look::kWater);
  add(fill_ball(Vec3f(0.7f, 0.3f, 0.5f), 5 * kSpacing, kSpacing, 0.3f), Look::kJelly);
  add(fill_ball(Vec3f(0.5f, 0.1f, 0.2f), 4 * kSpacing, kSpacing, 0.3f), Look::kSand);
  const Image first = render(), second = render();
  EXPECT_TRUE(std::equal(first.bytes().begin(), first.bytes().end(), second.bytes().begin()));
}

// Seen to fail: a long pass was one part, so that whoever closed a window waited for all of it.
TEST_F(RenderBodies, AFrameThatMayBeEndedHasTheSamePixelsAndEndsWhereverItIsEnded) {
  look_from_above();
  add(fill_box({Vec3f::Zero(), Vec3f(0.6f, 0.15f, 0.6f)}, kSpacing, 0.5f), Look::kWater);
  add(fill_box({Vec3f(0.3f, 0.5f, 0.3f), Vec3f(0.5f, 0.7f, 0.5f)}, kSpacing, 0.5f), Look::kJelly, 1);
  add(fill_box({Vec3f(0.7f, 0.5f, 0.3f), Vec3f(0.9f, 0.6f, 0.5f)}, kSpacing, 0.5f), Look::kSand, 2);
  const Image small = render();
  int parts_of_small = 0, parts = 0;
  ASSERT_TRUE(renderer_->render_while([&] { return ++parts_of_small > 0; }, scene_));
  Renderer large(512, 400);
  const Image whole = large.render(scene_);
  const std::optional<Image> in_parts = large.render_while([&] { return ++parts > 0; }, scene_);
  ASSERT_TRUE(in_parts);
  EXPECT_TRUE(std::ranges::equal(in_parts->bytes(), whole.bytes()));
  EXPECT_GE(parts, parts_of_small + 6) << "water, jelly and light are drawn in four parts each or so";
  for (const int last : {1, parts_of_small / 2, parts_of_small}) {
    int asked = 0;
    EXPECT_FALSE(renderer_->render_while([&] { return ++asked < last; }, scene_)) << last;
    EXPECT_EQ(asked, last) << "it is not asked again, and draws nothing more";
  }
  EXPECT_TRUE(std::ranges::equal(render().bytes(), small.bytes())) << "another frame, as if nothing had been";
}

}  // namespace
}  // namespace coppice::render
