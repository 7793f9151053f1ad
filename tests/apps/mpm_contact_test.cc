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

// A place in the frame of a collider.
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
    // It is on the side from which it came.
    EXPECT_GT(dot(transposed_rotation(next) * c.normal, entry), 0) << k;
    const Contact<double, D> again = meet(next, next, c.position, c.position + 0.3 * c.normal, kGap);
    EXPECT_FALSE(again.is_any) << "it goes away, " << k;
  }
  EXPECT_GT(met, 300);
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
