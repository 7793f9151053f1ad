// Contact of single particles: whatever comes from outside of a collider stays on its side of it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "apps/mpm/contact.h"

namespace coppice::mpm {
namespace {

constexpr double kGap = 1e-4;

class Numbers {
 public:
  double operator()(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
  template <int D>
  SmallVec<double, D> vector(double most) {
    SmallVec<double, D> v{};
    for (double& x : v.v) x = (*this)(-most, most);
    return v;
  }

 private:
  std::mt19937 random_{7};
};

template <int D>
OrientedBox<double, D> random_box(Numbers& number) {
  OrientedBox<double, D> box{};
  box.center = number.vector<D>(0.5);
  for (double& h : box.half_extent.v) h = number(0, 1) < 0.3 ? number(1e-3, 1e-2) : number(0.1, 0.6);
  AngularVelocity<double, D> turn{};
  for (double& w : turn.v) w = number(-3, 3);
  box.world_from_local = rotation_over(turn, 1.0);
  box.velocity = number.vector<D>(2);
  for (double& w : box.omega.v) w = number(-2, 2);
  return box;
}
template <int D>
Sphere<double, D> random_sphere(Numbers& number) {
  Sphere<double, D> s{};
  s.center = number.vector<D>(0.5), s.radius = number(0.05, 0.6), s.velocity = number.vector<D>(2);
  for (double& w : s.omega.v) w = number(-2, 2);
  return s;
}

template <int D>
OrientedCapsule<double, D> random_capsule(Numbers& number) {
  OrientedCapsule<double, D> c{};
  const OrientedBox<double, D> box = random_box<D>(number);
  c.center = box.center, c.world_from_local = box.world_from_local;
  c.velocity = box.velocity, c.omega = box.omega;
  c.radius = number(0.02, 0.3), c.half_height = number(0.05, 0.5);
  return c;
}
template <int D>
HalfSpace<double, D> random_half_space(Numbers& number) {
  HalfSpace<double, D> half{};
  const OrientedBox<double, D> box = random_box<D>(number);
  half.point = box.center, half.velocity = box.velocity, half.omega = box.omega;
  for (int i = 0; i < D; ++i) half.normal.v[i] = box.world_from_local.m[i * D];
  return half;
}

// A place in the frame of a collider.
template <int D>
SmallVec<double, D> local(const OrientedCapsule<double, D>& capsule, const SmallVec<double, D>& x) {
  return transpose(capsule.world_from_local) * (x - capsule.center);
}
template <int D>
SmallVec<double, D> local(const OrientedBox<double, D>& box, const SmallVec<double, D>& x) {
  return transpose(box.world_from_local) * (x - box.center);
}
template <int D>
SmallVec<double, D> local(const Sphere<double, D>& sphere, const SmallVec<double, D>& x) {
  return x - sphere.center;
}
template <int D>
bool holds(const OrientedBox<double, D>& box, const SmallVec<double, D>& p, double margin) {
  for (int i = 0; i < D; ++i)
    if (std::abs(p.v[i]) >= box.half_extent.v[i] + margin) return false;
  return true;
}
template <int D>
bool holds(const Sphere<double, D>& sphere, const SmallVec<double, D>& p, double margin) {
  return dot(p, p) < (sphere.radius + margin) * (sphere.radius + margin) && sphere.radius + margin > 0;
}

template <int D>
bool holds(const OrientedCapsule<double, D>& capsule, const SmallVec<double, D>& p, double margin) {
  const SmallVec<double, D> away = from_segment(capsule, p);
  return capsule.radius + margin > 0 && dot(away, away) < std::pow(capsule.radius + margin, 2);
}
// Returns the direction from which a place lies outside, in the frame that the normal is given in.
template <class Collider, int D>
SmallVec<double, D> outward(const Collider&, const SmallVec<double, D>& p) {
  return p;
}
template <int D>
SmallVec<double, D> outward(const OrientedCapsule<double, D>& capsule, const SmallVec<double, D>& p) {
  return from_segment(capsule, p);
}

template <int D>
SmallMat<double, D> transposed_rotation(const OrientedCapsule<double, D>& capsule) {
  return transpose(capsule.world_from_local);
}
template <int D>
SmallMat<double, D> transposed_rotation(const OrientedBox<double, D>& box) {
  return transpose(box.world_from_local);
}
template <int D>
SmallMat<double, D> transposed_rotation(const Sphere<double, D>&) {
  return identity<double, D>();
}

// Many ways are gone, some of which go through a thin box from one side to the other within a step.
template <int D, class Collider>
void expect_nobody_comes_through(Collider (*make)(Numbers&)) {
  Numbers number;
  int met = 0, passed = 0;
  for (int k = 0; k < 20000; ++k) {
    const Collider now = make(number), next = moved(now, 0.1);
    const SmallVec<double, D> from = number.vector<D>(1.5), to = from + number.vector<D>(1.5);
    const SmallVec<double, D> begin = local(now, from), end = local(next, to);
    if (holds(now, begin, 1e-6)) continue;
    const Contact<double, D> c = meet(now, next, from, to, kGap);
    bool goes_in = false, touches = false;
    SmallVec<double, D> entry = begin;
    for (int i = 0; i <= 2000; ++i) {
      const SmallVec<double, D> p = begin + (i / 2000.0) * (end - begin);
      goes_in = goes_in || holds(next, p, -1e-3);
      if (!touches && holds(next, p, 1e-3)) touches = true, entry = p;
    }
    if (goes_in) ASSERT_TRUE(c.is_any) << k;
    if (!touches) ASSERT_FALSE(c.is_any) << k;
    (c.is_any ? met : passed) += 1;
    if (!c.is_any) {
      EXPECT_EQ(dot(c.position - to, c.position - to), 0);
      continue;
    }
    EXPECT_NEAR(dot(c.normal, c.normal), 1, 1e-9);
    ASSERT_FALSE(holds(next, local(next, c.position), 0.5 * kGap)) << k;
    // It is on the side from which it came, or beside it, where it only grazes.
    EXPECT_GT(dot(transposed_rotation(next) * c.normal, outward(next, entry)), -0.01) << k;
    const Contact<double, D> again = meet(next, next, c.position, c.position + 0.3 * c.normal, kGap);
    EXPECT_FALSE(again.is_any) << "it goes away, " << k;
  }
  EXPECT_GT(met, 200);
  EXPECT_GT(passed, 1000);
}

TEST(ParticleContact, NobodyComesThroughABox) {
  expect_nobody_comes_through<2>(random_box<2>);
  expect_nobody_comes_through<3>(random_box<3>);
}
TEST(ParticleContact, NobodyComesThroughASphere) {
  expect_nobody_comes_through<2>(random_sphere<2>);
  expect_nobody_comes_through<3>(random_sphere<3>);
}

TEST(ParticleContact, NobodyComesThroughACapsule) {
  expect_nobody_comes_through<2>(random_capsule<2>);
  expect_nobody_comes_through<3>(random_capsule<3>);
}

TEST(ParticleContact, NobodyComesBehindAPlane) {
  Numbers number;
  int met = 0;
  for (int k = 0; k < 5000; ++k) {
    const HalfSpace<double, 3> now = random_half_space<3>(number), next = moved(now, 0.1);
    const SmallVec<double, 3> from = number.vector<3>(1.5), to = from + number.vector<3>(1.5);
    const Contact<double, 3> c = meet(now, next, from, to, kGap);
    const bool was_outside = sample(now, from).distance > -kGap, comes_in = sample(next, to).distance < 0;
    ASSERT_EQ(c.is_any, was_outside && comes_in) << k;
    if (!c.is_any) continue;
    ++met;
    EXPECT_NEAR(sample(next, c.position).distance, kGap, 1e-12);
    const SmallVec<double, 3> shift = c.position - to;
    EXPECT_NEAR(dot(shift, shift), std::pow(dot(shift, next.normal), 2), 1e-12) << "it slides";
    const SmallVec<double, 3> off = c.velocity - sample(next, c.position).velocity;
    EXPECT_NEAR(dot(off, off), 0, 1e-20);
  }
  EXPECT_GT(met, 300);
}

TEST(ParticleContact, SlidesAlongAFaceAndKnowsItsSpeed) {
  OrientedBox<double, 2> plate{{{0, 0}}, {{1, 0.001}}, {{1, 0, 0, 1}}, {{0, 3}}, {{0}}};
  const Contact<double, 2> c = meet(plate, moved(plate, 0.1), {{-0.5, 0.2}}, {{-0.3, 0.1}}, kGap);
  ASSERT_TRUE(c.is_any);
  EXPECT_NEAR(c.position.v[0], -0.3, 1e-12);
  EXPECT_NEAR(c.position.v[1], 0.3 + 0.001 + kGap, 1e-12);
  EXPECT_EQ(c.normal.v[1], 1);
  EXPECT_EQ(c.velocity.v[1], 3);
}

TEST(ParticleContact, LeavesAloneWhoIsInside) {
  const OrientedBox<double, 2> box{{{0, 0}}, {{1, 1}}, {{1, 0, 0, 1}}, {{0, 0}}, {{0}}};
  EXPECT_FALSE(meet(box, box, {{0.2, 0.1}}, {{0.3, 2.0}}, kGap).is_any);
  const Sphere<double, 2> sphere{{{0, 0}}, 1, {{0, 0}}, {{0}}};
  EXPECT_FALSE(meet(sphere, sphere, {{0.2, 0.1}}, {{0.3, 2.0}}, kGap).is_any);
}

}  // namespace
}  // namespace coppice::mpm
