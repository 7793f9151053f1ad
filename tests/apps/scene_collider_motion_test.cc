// Motion between keyframes: where a collider is, how fast, and what is said of wrong tables.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "apps/geometry/mesh.h"
#include "apps/scene/collider_motion.h"
#include "tests/apps/scene_test_util.h"

namespace coppice::scene {
namespace {

const std::string kBody =
    "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"sand\"\n";
const std::string kBox = "[[collider]]\nshape = \"box\"\ncenter = [0, 0, 0]\nhalf_size = [0.1, 0.1, 0.1]\n";

SceneConfig parse(const std::string& text) { return parse_scene(text, "a.toml"); }
std::string error_in(const std::string& text) {
  return error_of([&] { parse(text); });
}
std::string key(double time_s, const std::string& more = "") {
  return "[[collider.keyframe]]\ntime = " + std::to_string(time_s) + "\n" + more;
}

TEST(ColliderMotion, IsConstantBetweenKeyframesAndRestsBeforeAndBehind) {
  const SceneConfig scene =
      parse(kBody + kBox + key(0.5, "center = [1, 0, 0]\n") +
            key(1.5, "center = [3, 2, 0]\nrotate_deg = [0, 0, 90]\n") + key(2, "rotate_deg = [0, 0, 90]\n"));
  const Collider& c = scene.colliders[0];
  EXPECT_EQ(motion_at(c, 0.2).velocity, Vec3d(0, 0, 0));
  EXPECT_EQ(pose_at(c, 0.2).center, Vec3d(1, 0, 0));
  EXPECT_EQ(motion_at(c, 0.5).velocity, Vec3d(2, 2, 0)) << "a keyframe's time belongs to what follows";
  EXPECT_EQ(motion_at(c, 1.0).velocity, Vec3d(2, 2, 0));
  EXPECT_EQ(motion_at(c, 1.0).start_s, 0.5);
  EXPECT_NEAR(motion_at(c, 1.0).angular_velocity_rad_s.z(), M_PI / 2, 1e-12);
  EXPECT_LT((pose_at(c, 1.0).center - Vec3d(2, 1, 0)).norm(), 1e-12);
  EXPECT_LT((pose_at(c, 1.0).world_from_local - rotation_from_euler_degrees({0, 0, 45})).norm(), 1e-6);
  // The last keyframe's place is the collider's own.
  EXPECT_EQ(pose_at(c, 7).center, Vec3d(0, 0, 0));
  EXPECT_EQ(motion_at(c, 7).velocity, Vec3d(0, 0, 0));
  EXPECT_EQ(next_keyframe_s(scene, 0, 1e-9), 0.5);
  EXPECT_EQ(next_keyframe_s(scene, 0.5, 1e-9), 1.5);
  EXPECT_EQ(next_keyframe_s(scene, 2, 1e-9), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(fastest_point_m_s(scene, c, 1), std::sqrt(8) + std::sqrt(0.03) * M_PI / 2, 1e-12);
  EXPECT_EQ(fastest_point_m_s(scene, c, 3), 0);
}

TEST(ColliderMotion, TurnsByAllOfOneAngleAndElseTheShortestWay) {
  const auto spin = [](const char* from, const char* to) {
    const SceneConfig scene = parse(kBody + kBox + key(0, std::string("rotate_deg = ") + from + "\n") +
                                    key(1, std::string("rotate_deg = ") + to + "\n"));
    // In each case it comes to where the later keyframe says.
    const RigidPose end = pose_at(scene.colliders[0], 1 - 1e-6);
    const Vec3d& last = scene.colliders[0].keyframes[1].rotate_deg;
    EXPECT_LT((end.world_from_local - rotation_from_euler_degrees(last.cast<float>())).norm(), 1e-4) << to;
    return Vec3d(motion_at(scene.colliders[0], 0).angular_velocity_rad_s);
  };
  EXPECT_LT((spin("[10, 20, 0]", "[10, 20, 720]") - Vec3d(0, 0, 4 * M_PI)).norm(), 1e-12);
  EXPECT_LT((spin("[10, 0, 0]", "[10, -360, 0]") - Vec3d(0, -2 * M_PI, 0)).norm(), 1e-12);
  EXPECT_LT((spin("[0, 0, 0]", "[270, 0, 0]") - Vec3d(1.5 * M_PI, 0, 0)).norm(), 1e-12);
  const Vec3d shortest = spin("[0, 0, 30]", "[0, 300, 30]");
  EXPECT_NEAR(shortest.norm(), M_PI / 3, 1e-5) << "z turns behind y, so that the axis is another";
}

TEST(ColliderMotion, RefusesWrongTables) {
  EXPECT_EQ(error_in(kBody + kBox + key(1)),
            "usage: a.toml:10:1: 'collider[0]' has one keyframe; it needs two to move, and none to rest");
  EXPECT_EQ(
      error_in(kBody + kBox + key(1) + key(1)),
      "usage: a.toml:13:1: 'collider[0].keyframe[1].time' must be later than the one before, which is at "
      "1 s; it is 1 s");
  EXPECT_EQ(error_in(kBody + kBox + "velocity = [1, 0, 0]\n" + key(0) + key(1)),
            "usage: a.toml:10:1: 'collider[0].velocity' and 'collider[0].keyframe' cannot both be given");
  EXPECT_EQ(error_in(kBody + kBox + "angular_velocity_rad_s = [1, 0, 0]\n" + key(0) + key(1)),
            "usage: a.toml:10:1: 'collider[0].angular_velocity_rad_s' and 'collider[0].keyframe' cannot both "
            "be given");
  EXPECT_EQ(error_in(kBody + kBox + "[[collider.keyframe]]\ncenter = [0, 0, 0]\n"),
            "usage: a.toml:10:1: 'collider[0].keyframe[0].time' is required but missing");
}

TEST(ColliderShapes, RefuseWhatHasNoSense) {
  const std::string plane = "[[collider]]\nshape = \"plane\"\ncenter = [0, 0, 0]\n";
  EXPECT_EQ(error_in(kBody + plane + "normal = [0, 0, 0]\n"),
            "usage: a.toml:9:1: 'collider[0].normal' must not be zero");
  EXPECT_EQ(parse(kBody + plane + "normal = [0, 3, 4]\n").colliders[0].normal, Vec3d(0, 0.6, 0.8));
  EXPECT_EQ(error_in("dim = 2\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5]\nradius = 0.1\n"
                     "material = \"sand\"\n[[collider]]\nshape = \"mesh\"\nmesh = \"a.obj\"\n"),
            "usage: a.toml:8:1: 'collider[0].shape' = \"mesh\" needs dim = 3");
  EXPECT_EQ(error_in(kBody + "[[collider]]\nshape = \"mesh\"\nmesh = \"\"\n"),
            "usage: a.toml:8:1: 'collider[0].mesh' must name a file");
  EXPECT_EQ(error_in(kBody + "[[collider]]\nshape = \"capsule\"\ncenter = [0, 0, 0]\nradius = 0.1\n"),
            "usage: a.toml:6:1: 'collider[0].half_height' is required but missing (only with shape = "
            "\"capsule\")");
}

}  // namespace
}  // namespace coppice::scene
