// The camera's path through keyframes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "apps/render/camera_path.h"
#include "core/error.h"

namespace coppice::render {
namespace {

CameraKey key(double time_s, Vec3f position, Vec3f look_at = Vec3f::Zero(), float fov_deg = 35) {
  Camera camera;
  camera.position = position, camera.look_at = look_at, camera.fov_deg = fov_deg;
  return {time_s, camera};
}

TEST(CameraPath, PassesItsKeysAndStandsStillOutside) {
  const std::vector<CameraKey> keys{key(1, {0, 0, 3}), key(2, {2, 1, 2}, {0.5f, 0, 0}, 50),
                                    key(4, {3, 0, 0})};
  for (const CameraKey& k : keys) {
    const Camera at = camera_at(keys, k.time_s), before = camera_at(keys, k.time_s - 1e-9);
    EXPECT_LT((at.position - k.camera.position).norm(), 1e-5f);
    EXPECT_LT((before.position - k.camera.position).norm(), 1e-5f);
    EXPECT_LT((before.look_at - k.camera.look_at).norm(), 1e-5f);
    EXPECT_NEAR(before.fov_deg, k.camera.fov_deg, 1e-4f);
  }
  EXPECT_EQ(camera_at(keys, -5).position, keys[0].camera.position);
  EXPECT_EQ(camera_at(keys, 100).position, keys[2].camera.position);
  EXPECT_EQ(camera_at(keys, std::numeric_limits<double>::quiet_NaN()).position, keys[0].camera.position);
}

TEST(CameraPath, KeysAroundOnePlaceStayAtTheirDistance) {
  std::vector<CameraKey> keys;
  for (int i = 0; i <= 8; ++i) {  // twice around, so that the angle passes where it jumps
    const auto angle = static_cast<float>(i * 0.5 * std::numbers::pi);
    keys.push_back(key(i, Vec3f(1 + 4 * std::sin(angle), 2, 4 * std::cos(angle)), Vec3f(1, 2, 0)));
  }
  Vec3f last = keys[0].camera.position;
  for (double t = 0; t <= 8; t += 0.01) {
    const Camera camera = camera_at(keys, t);
    EXPECT_NEAR((camera.position - Vec3f(1, 2, 0)).norm(), 4.0f, 1e-4f) << t;
    EXPECT_LT((camera.position - last).norm(), 0.11f) << t;  // no jump: 4 m * pi / 2 per second, and a half
    last = camera.position;
  }
}

TEST(CameraPath, BeginsAndEndsAtRestAndDoesNotStopBetween) {
  const std::vector<CameraKey> keys{key(0, {0, 0, 3}), key(1, {1, 0, 3}, {1, 0, 0}),
                                    key(2, {2, 0, 3}, {2, 0, 0})};
  const auto speed = [&](double t) {
    return (camera_at(keys, t + 1e-3).position - camera_at(keys, t).position).norm() / 1e-3f;
  };
  EXPECT_LT(speed(0), 0.02f);
  EXPECT_LT(speed(2 - 1e-3), 0.02f);
  EXPECT_NEAR(speed(0.999), 1.0f, 0.05f);
  EXPECT_NEAR(speed(1.0), 1.0f, 0.05f);
}

// The slopes at the second key would take the camera beyond the zenith, where it turned over.
TEST(CameraPath, NeverPassesThePoles) {
  const std::vector<CameraKey> keys{key(0, {0, -3, 0.1f}), key(1, {0, 3, 0.5f}), key(5, {0, 3, 0.4f})};
  for (double t = 0; t < 5; t += 0.01) {
    const Camera camera = camera_at(keys, t);
    camera.validate();
    EXPECT_GE(camera.position.z(), 0.0f) << t;
  }
}

TEST(CameraPath, RefusesKeysThatAreNoPath) {
  EXPECT_THROW(camera_at({}, 0), Error);
  const std::vector<CameraKey> keys{key(1, {0, 0, 3}), key(1, {1, 0, 3})};
  EXPECT_THROW(camera_at(keys, 0), Error);
}

}  // namespace
}  // namespace coppice::render
