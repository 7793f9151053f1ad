// Tests of apps/mpm/collision.h: a table of velocity responses, and distances, normals and motion of the
// colliders.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "apps/mpm/collision.h"

namespace coppice::mpm {
namespace {

using Vec2 = SmallVec<float, 2>;
using Vec3 = SmallVec<float, 3>;
constexpr unsigned kSeed = 4711;

template <int D>
void expect_near(SmallVec<float, D> actual, SmallVec<float, D> expected, float tolerance) {
  for (int i = 0; i < D; ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "component " << i;
}

TEST(MpmCollision, VelocityResponseTable) {
  using enum BoundaryKind;
  const struct {
    const char* name;
    BoundaryKind kind;
    float friction;
    Vec3 velocity, collider, expected;
  } cases[] = {
      {"stick stops", kStick, 0, {{3, 2, -1}}, {{0, 0, 0}}, {{0, 0, 0}}},
      {"stick carries along", kStick, 0.5f, {{3, 2, 5}}, {{1, 0, 2}}, {{1, 0, 2}}},
      {"slip keeps the tangential part", kSlip, 0, {{3, 2, -1}}, {{0, 0, 0}}, {{3, 2, 0}}},
      {"slip holds a receding node", kSlip, 0, {{3, 2, 1}}, {{0, 0, 0}}, {{3, 2, 0}}},
      {"slip has no friction without pressure", kSlip, 0.5f, {{3, 0, 1}}, {{0, 0, 0}}, {{3, 0, 0}}},
      {"slip rubs under pressure", kSlip, 0.5f, {{3, 0, -2}}, {{0, 0, 0}}, {{2, 0, 0}}},
      {"separate lets a receding node go", kSeparate, 0.5f, {{3, 2, 1}}, {{0, 0, 0}}, {{3, 2, 1}}},
      {"separate stops the approach", kSeparate, 0, {{3, 2, -1}}, {{0, 0, 0}}, {{3, 2, 0}}},
      {"separate rubs under pressure", kSeparate, 0.5f, {{3, 4, -5}}, {{0, 0, 0}}, {{1.5f, 2, 0}}},
      {"friction stops, never reverses", kSeparate, 2, {{1, 0, -5}}, {{0, 0, 0}}, {{0, 0, 0}}},
      {"friction with no sliding is finite", kSeparate, 2, {{0, 0, -5}}, {{0, 0, 0}}, {{0, 0, 0}}},
      {"a rising floor lifts", kSeparate, 0, {{1, 0, 0}}, {{0, 0, 2}}, {{1, 0, 2}}},
      {"a sinking floor lets go", kSeparate, 0, {{1, 0, 0}}, {{0, 0, -2}}, {{1, 0, 0}}},
      {"friction drags towards the collider", kSeparate, 0.5f, {{0, 0, -2}}, {{3, 0, 0}}, {{1, 0, 0}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    expect_near(respond_to_collider(c.kind, c.friction, c.velocity, c.collider, Vec3{{0, 0, 1}}), c.expected,
                1e-6f);
  }
}

TEST(MpmCollision, HalfSpaceMeasuresAlongItsNormal) {
  const HalfSpace<float, 2> half{{{1, 1}}, {{0.6f, 0.8f}}, {{1, 2}}, {{3}}};
  const auto s = sample(half, Vec2{{2, 1}});
  EXPECT_NEAR(s.distance, 0.6f, 1e-6f);
  EXPECT_LT(sample(half, Vec2{{0, 1}}).distance, 0.0f);
  expect_near(s.normal, Vec2{{0.6f, 0.8f}}, 0.0f);
  expect_near(s.velocity, Vec2{{1, 5}}, 1e-6f);
  const auto later = moved(half, 0.5f);
  expect_near(later.point, Vec2{{1.5f, 2}}, 1e-6f);
  expect_near(later.normal, rotation_over(half.omega, 0.5f) * half.normal, 1e-6f);
}

// The distance from the segment's nearest point, found by trying many.
TEST(MpmCollision, CapsuleMeasuresFromItsSegment) {
  OrientedCapsule<float, 3> capsule{{{0.1f, 0.2f, 0.3f}}, 0.4f, 0.15f, {}, {{1, 0, 0}}, {{0, 0, 2}}};
  capsule.world_from_local = rotation_over(Vec3{{0.5f, 1.0f, -0.7f}}, 1.0f);
  const Vec3 axis{
      {capsule.world_from_local(0, 1), capsule.world_from_local(1, 1), capsule.world_from_local(2, 1)}};
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<float> place(-1, 1);
  for (int k = 0; k < 200; ++k) {
    const Vec3 x{{place(random), place(random), place(random)}};
    float nearest = 10;
    for (int i = -1000; i <= 1000; ++i) {
      const Vec3 away = x - (capsule.center + 0.4f * static_cast<float>(i) / 1000 * axis);
      nearest = std::min(nearest, std::sqrt(dot(away, away)));
    }
    const auto s = sample(capsule, x);
    EXPECT_NEAR(s.distance, nearest - 0.15f, 1e-4f);
    EXPECT_NEAR(dot(s.normal, s.normal), 1, 1e-5f);
    EXPECT_NEAR(sample(capsule, x + 0.01f * s.normal).distance, s.distance + 0.01f, 1e-4f);
    expect_near(s.velocity, Vec3{{1 - 2 * (x[1] - 0.2f), 2 * (x[0] - 0.1f), 0}}, 1e-5f);
  }
}

TEST(MpmCollision, SphereHasDistanceNormalAndSpin) {
  const Sphere<float, 3> sphere{{{1, 0, 0}}, 0.5f, {{0, 0, 3}}, {{0, 0, 2}}};
  const auto s = sample(sphere, Vec3{{3, 0, 0}});
  EXPECT_NEAR(s.distance, 1.5f, 1e-6f);
  expect_near(s.normal, Vec3{{1, 0, 0}}, 1e-6f);
  expect_near(s.velocity, Vec3{{0, 4, 3}}, 1e-6f);
  EXPECT_NEAR(sample(sphere, Vec3{{1, 0.25f, 0}}).distance, -0.25f, 1e-6f);
  const auto center = sample(sphere, sphere.center);
  EXPECT_NEAR(center.distance, -0.5f, 1e-6f);
  expect_near(center.normal, Vec3{{0, 0, 1}}, 0.0f);
  expect_near(moved(sphere, 0.5f).center, Vec3{{1, 0, 1.5f}}, 1e-6f);
  const Sphere<float, 2> disc{{{0, 0}}, 1.0f, {{0, 0}}, {{2}}};
  expect_near(sample(disc, Vec2{{0, 3}}).velocity, Vec2{{-6, 0}}, 1e-6f);
}

TEST(MpmCollision, BoxDistanceAndNormalInTheLocalFrame) {
  const OrientedBox<float, 2> box{{{1, 1}}, {{2, 1}}, identity<float, 2>(), {{0, 0}}, {{0}}};
  const struct {
    Vec2 x;
    float distance;
    Vec2 normal;
  } cases[] = {
      {{{5, 1}}, 2, {{1, 0}}},          {{{1, -3}}, 3, {{0, -1}}},         {{{6, 6}}, 5, {{0.6f, 0.8f}}},
      {{{2.75f, 1}}, -0.25f, {{1, 0}}}, {{{1, 0.25f}}, -0.25f, {{0, -1}}}, {{{-1.5f, 1}}, 0.5f, {{-1, 0}}},
  };
  for (const auto& c : cases) {
    const auto s = sample(box, c.x);
    EXPECT_NEAR(s.distance, c.distance, 1e-6f);
    expect_near(s.normal, c.normal, 1e-6f);
  }
}

TEST(MpmCollision, BoxNormalIsTheGradientOfItsDistance) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> uniform(-2, 2);
  OrientedBox<double, 3> box{
      {{0.1, 0.2, -0.3}}, {{1.0, 0.6, 0.8}}, identity<double, 3>(), {{0, 0, 0}}, {{0.5, 1.0, -0.7}}};
  box = moved(box, 1.3);
  const double h = 1e-6;
  int compared = 0;
  for (int n = 0; n < 2000; ++n) {
    const SmallVec<double, 3> x = {{uniform(random), uniform(random), uniform(random)}};
    const auto s = sample(box, x);
    ASSERT_NEAR(dot(s.normal, s.normal), 1.0, 1e-12);
    SmallVec<double, 3> gradient{};
    for (int i = 0; i < 3; ++i) {
      auto up = x, down = x;
      up[i] += h;
      down[i] -= h;
      gradient[i] = (sample(box, up).distance - sample(box, down).distance) / (2 * h);
    }
    if (std::fabs(dot(gradient, gradient) - 1) > 1e-4) continue;  // on a ridge the distance has no gradient
    ++compared;
    for (int i = 0; i < 3; ++i) ASSERT_NEAR(s.normal[i], gradient[i], 1e-4);
    // Walking the distance along the normal reaches the surface.
    ASSERT_NEAR(sample(box, x - s.distance * s.normal).distance, 0.0, 1e-9);
  }
  EXPECT_GT(compared, 1900);
}

TEST(MpmCollision, RotatingBoxTurnsAsItsVelocitySays) {
  const OrientedBox<double, 3> box{
      {{1, 2, 3}}, {{1, 1, 1}}, identity<double, 3>(), {{1, 0, -1}}, {{0.3, -0.8, 0.5}}};
  const double h = 1e-5;
  const SmallVec<double, 3> local = {{0.4, -0.7, 0.2}};
  const auto at = [&](double t) {
    const auto b = moved(box, t);
    return b.center + b.world_from_local * local;
  };
  const auto velocity = sample(moved(box, 0.7), at(0.7)).velocity;
  const auto difference = (0.5 / h) * (at(0.7 + h) - at(0.7 - h));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(velocity[i], difference[i], 1e-8);
  const auto r = moved(box, 100.0).world_from_local;
  const auto should_be_identity = r * transpose(r);
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(should_be_identity.m[i], i % 4 == 0 ? 1.0 : 0.0, 1e-12);
}

TEST(MpmCollision, PlaneRotationHasItsSense) {
  const OrientedBox<double, 2> box{{{0, 0}}, {{2, 1}}, identity<double, 2>(), {{0, 0}}, {{1.0}}};
  const auto quarter = moved(box, std::acos(0.0));
  EXPECT_NEAR(quarter.world_from_local.m[2], 1.0, 1e-12);  // local x points along world y
  EXPECT_NEAR(sample(quarter, SmallVec<double, 2>{{0, 3}}).distance, 1.0, 1e-12);
  EXPECT_NEAR(sample(quarter, SmallVec<double, 2>{{3, 0}}).distance, 2.0, 1e-12);
}

}  // namespace
}  // namespace coppice::mpm
