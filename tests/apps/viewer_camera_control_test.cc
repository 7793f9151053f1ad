// The viewer's camera moves so under a mouse and keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "apps/scene/scene.h"
#include "apps/viewer/camera_control.h"

namespace coppice::viewer {
namespace {

constexpr int kWidth = 800, kHeight = 600;
constexpr float kTolerance = 1e-4f;

const Aabb3f kBox{Vec3f(-1, 0, -2), Vec3f(3, 2, 1)};

CameraControl control_3d() {
  CameraControl control;
  control.set_viewport(kWidth, kHeight);
  control.begin(render::frame_domain_3d(kBox, static_cast<float>(kWidth) / kHeight));
  return control;
}

CameraControl control_2d() {
  CameraControl control;
  control.set_viewport(kWidth, kHeight);
  control.begin(render::frame_domain_2d(kBox, static_cast<float>(kWidth) / kHeight));
  return control;
}

Vec2f pixel_of(const CameraControl& control, const Vec3f& point) {
  return control.camera().pixel_from_world(point, kWidth, kHeight);
}

void expect_near(const Vec3f& a, const Vec3f& b) { EXPECT_LT((a - b).norm(), kTolerance) << a << "\n" << b; }

TEST(CameraControl, StartsAsItIsTold) {
  const render::Camera first = render::frame_domain_3d(kBox, static_cast<float>(kWidth) / kHeight);
  const CameraControl control = control_3d();
  expect_near(control.camera().position, first.position);
  expect_near(control.camera().look_at, first.look_at);
  EXPECT_LT((control.camera().view_from_world() - first.view_from_world()).norm(), kTolerance);
}

TEST(CameraControl, OrbitsAboutThePivotAtOneDistance) {
  CameraControl control = control_3d();
  const float distance = (control.camera().position - control.pivot()).norm();
  const Vec2f before = pixel_of(control, control.pivot());
  const Vec3f from = control.camera().position;
  control.orbit({150, 40});
  EXPECT_GT((control.camera().position - from).norm(), 0.1f * distance);
  EXPECT_NEAR((control.camera().position - control.pivot()).norm(), distance, kTolerance * distance);
  EXPECT_LT((pixel_of(control, control.pivot()) - before).norm(), 0.1f);
}

TEST(CameraControl, WhatIsInFrontFollowsTheMouse) {
  CameraControl control = control_3d();
  const Vec3f towards = control.pivot() + 0.3f * (control.camera().position - control.pivot());
  const Vec2f before = pixel_of(control, towards);
  control.orbit({30, 20});
  const Vec2f moved = pixel_of(control, towards) - before;
  EXPECT_GT(moved.x(), 1);
  EXPECT_GT(moved.y(), 1);
}

TEST(CameraControl, StopsShortOfThePoles) {
  for (const float sign : {-1.0f, 1.0f}) {
    CameraControl control = control_3d();
    for (int i = 0; i < 100; ++i) control.orbit({0, sign * 50});
    const Vec3f back = (control.camera().position - control.pivot()).normalized();
    EXPECT_GT(sign * back.y(), 0.99f);
    EXPECT_LT(sign * back.y(), 1.0f);
    EXPECT_GT(control.camera().view_from_world()(1, 1), 0);  // y is still up
  }
}

TEST(CameraControl, PanMovesThePivotWithTheMouse) {
  for (CameraControl control : {control_3d(), control_2d()}) {
    const Vec3f point = control.pivot();
    const Vec2f before = pixel_of(control, point);
    control.pan({37, -21});
    EXPECT_LT((pixel_of(control, point) - before - Vec2f(37, -21)).norm(), 0.1f);
  }
}

TEST(CameraControl, DollyNeverReachesThePivot) {
  CameraControl control = control_3d();
  const Vec3f back = (control.camera().position - control.pivot()).normalized();
  const float distance = (control.camera().position - control.pivot()).norm();
  control.dolly(1, {0, 0});
  EXPECT_NEAR((control.camera().position - control.pivot()).norm(), 0.9f * distance, kTolerance * distance);
  for (int i = 0; i < 500; ++i) control.dolly(3, {0, 0});
  const Vec3f still = control.camera().position - control.pivot();
  EXPECT_GT(still.dot(back), 0);
  EXPECT_LT(still.norm(), 0.01f * distance);
  EXPECT_NO_THROW(control.camera().validate());
  for (int i = 0; i < 500; ++i) control.dolly(-3, {0, 0});
  EXPECT_TRUE(control.camera().position.allFinite());
}

TEST(CameraControl, ZoomsAFlatSceneAboutTheMouse) {
  CameraControl control = control_2d();
  const Vec3f point(2, 1.5f, -0.5f);
  const Vec2f at = pixel_of(control, point);
  const float height = control.camera().height_m;
  control.dolly(4, at);
  EXPECT_LT(control.camera().height_m, 0.7f * height);
  EXPECT_LT((pixel_of(control, point) - at).norm(), 0.1f);
}

TEST(CameraControl, SeesAFlatSceneFromTheFront) {
  CameraControl control = control_2d();
  control.orbit({100, 50});
  control.set_flight({1, 1, 1});
  control.advance(1);
  control.change_fov(3);
  const Vec3f back = control.camera().position - control.camera().look_at;
  EXPECT_EQ(back.x(), 0);
  EXPECT_EQ(back.y(), 0);
  EXPECT_GT(back.z(), 0);
  EXPECT_EQ(control.text().front(), '#');
}

TEST(CameraControl, ANewPivotLeavesThePictureAlone) {
  CameraControl control = control_3d();
  const Vec3f pivot(2.5f, 0.5f, 0.5f);
  const render::Camera before = control.camera();
  control.set_pivot(pivot);
  EXPECT_LT((control.camera().view_from_world() - before.view_from_world()).norm(), kTolerance);
  const Vec2f at = pixel_of(control, pivot);
  control.orbit({120, -30});
  EXPECT_LT((pixel_of(control, pivot) - at).norm(), 0.5f);
  control.dolly(3, {0, 0});
  EXPECT_LT((pixel_of(control, pivot) - at).norm(), 0.5f);
}

TEST(CameraControl, FliesAsFarHoweverTimeIsCut) {
  CameraControl fast = control_3d(), slow = control_3d();
  fast.set_flight({0, 0, -1});
  slow.set_flight({0, 0, -1});
  for (int i = 0; i < 64; ++i) fast.advance(1.0f / 64);
  slow.advance(1);
  expect_near(fast.camera().position, slow.camera().position);
  const CameraControl still = control_3d();
  const Vec3f forward = (still.pivot() - still.camera().position).normalized();
  EXPECT_GT((slow.camera().position - still.camera().position).dot(forward), 0.1f);
}

TEST(CameraControl, IsMovingUntilItHasStoodStill) {
  CameraControl control;
  EXPECT_FALSE(control.is_moving());
  control = control_3d();
  control.advance(CameraControl::kSettle_s);
  EXPECT_FALSE(control.is_moving());
  control.orbit({1, 0});
  EXPECT_TRUE(control.is_moving());
  control.advance(0.5f * CameraControl::kSettle_s);
  EXPECT_TRUE(control.is_moving());
  control.advance(CameraControl::kSettle_s);
  EXPECT_FALSE(control.is_moving());
}

TEST(CameraControl, FramesABoxFromWhereItLooks) {
  CameraControl control = control_3d();
  control.orbit({200, -60});
  control.pan({300, 10});
  const Vec3f back = (control.camera().position - control.camera().look_at).normalized();
  const Aabb3f box{Vec3f(0, 0, 0), Vec3f(0.5f, 1, 0.25f)};
  control.frame(box);
  expect_near((control.camera().position - control.camera().look_at).normalized(), back);
  float most = 0;
  for (int i = 0; i < 8; ++i) {
    const Vec3f corner((i & 1) != 0 ? box.max.x() : 0, (i & 2) != 0 ? box.max.y() : 0,
                       (i & 4) != 0 ? box.max.z() : 0);
    const Vec2f p = pixel_of(control, corner);
    most = std::max({most, std::abs(2 * p.x() / kWidth - 1), std::abs(2 * p.y() / kHeight - 1)});
  }
  EXPECT_LT(most, 0.96f);
  EXPECT_GT(most, 0.85f);
}

TEST(CameraControl, FramesAFlatBox) {
  CameraControl control = control_2d();
  control.frame({Vec3f(0, 0, 0), Vec3f(0.4f, 0.1f, 0)});
  const Vec2f left = pixel_of(control, {0, 0.05f, 0}), right = pixel_of(control, {0.4f, 0.05f, 0});
  EXPECT_NEAR(left.x(), 0.03f * kWidth, 1);
  EXPECT_NEAR(right.x(), 0.97f * kWidth, 1);
}

TEST(CameraControl, IgnoresWhatCannotBeSeen) {
  CameraControl control = control_3d();
  const render::Camera before = control.camera();
  control.frame({});
  control.frame({Vec3f(0, 0, 0), Vec3f(1, NAN, 1)});
  control.set_pivot({NAN, 0, 0});
  control.set_viewport(0, 0);
  control.set_pivot(before.position);
  expect_near(control.camera().position, before.position);
  control.frame({Vec3f(1, 1, 1), Vec3f(1, 1, 1)});
  EXPECT_NO_THROW(control.camera().validate());
}

TEST(CameraControl, KeepsTheFieldOfViewWithinBounds) {
  CameraControl control = control_3d();
  const Vec3f position = control.camera().position;
  for (int i = 0; i < 100; ++i) control.change_fov(2);
  EXPECT_GE(control.camera().fov_deg, 1);
  for (int i = 0; i < 100; ++i) control.change_fov(-2);
  EXPECT_LE(control.camera().fov_deg, 150);
  expect_near(control.camera().position, position);
}

TEST(CameraControl, WritesTheCameraAsSceneFilesHaveIt) {
  CameraControl control = control_3d();
  control.orbit({77, -13});
  const scene::SceneConfig read = scene::parse_scene(
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n" +
          control.text(),
      "a.toml");
  EXPECT_LT((read.output.camera.position.cast<float>() - control.camera().position).norm(), kTolerance);
}

TEST(Keyframes, AreKeptByTimeAndReadByScenes) {
  std::vector<render::CameraKey> keys;
  render::Camera camera;
  for (const double time_s : {0.5, 0.125, 2.0, 0.5}) {
    camera.position.x() += 0.25f;
    put_key(keys, {time_s, camera});
  }
  const scene::SceneConfig scene = scene::parse_scene(
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n" +
          keyframes_text(keys),
      "keys.toml");
  const std::vector<scene::CameraKeyframe>& read = scene.output.camera.keyframes;
  ASSERT_EQ(read.size(), 3u);
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].time_s, keys[i].time_s);
    EXPECT_EQ(read[i].position.cast<float>(), keys[i].camera.position);
    EXPECT_EQ(read[i].fov_deg, 35);  // of a camera of the renderer
  }
  EXPECT_EQ(keys[1].camera.position.x(), 1.0f);  // the later one of its time
}

TEST(CameraControl, KnowsWhetherAHandHasLedIt) {
  const std::vector<std::function<void(CameraControl&)>> acts = {[](CameraControl& c) {
                                                                   c.orbit({3, 2});
                                                                 },
                                                                 [](CameraControl& c) {
                                                                   c.pan({3, 2});
                                                                 },
                                                                 [](CameraControl& c) {
                                                                   c.dolly(1, {0, 0});
                                                                 },
                                                                 [](CameraControl& c) { c.change_fov(1); },
                                                                 [](CameraControl& c) {
                                                                   c.set_flight({1, 0, 0}), c.advance(0.1f);
                                                                 },
                                                                 [](CameraControl& c) {
                                                                   c.frame({Vec3f::Zero(), Vec3f::Ones()});
                                                                 },
                                                                 [](CameraControl& c) {
                                                                   c.set_pivot({0.1f, 0.2f, 0.3f});
                                                                 }};
  for (size_t i = 0; i < acts.size(); ++i) {
    CameraControl control = control_3d();
    control.advance(0.1f);
    EXPECT_FALSE(control.is_led_by_hand());
    acts[i](control);
    EXPECT_TRUE(control.is_led_by_hand()) << i;
    const render::Camera led = control.camera();
    control.let_go();
    EXPECT_FALSE(control.is_led_by_hand());
    EXPECT_EQ(control.camera().position, led.position);
    control.orbit({3, 2});
    control.begin(led);
    EXPECT_FALSE(control.is_led_by_hand());
  }
}

}  // namespace
}  // namespace coppice::viewer
