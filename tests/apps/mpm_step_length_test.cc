// The length of a step, and what the error says where there would be too many of them: the one cause, and
// how it is mended.
#include "apps/mpm/step_length.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice::mpm {
namespace {

scene::SceneConfig two_balls() {
  return scene::parse_scene(
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.3, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n"
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.7, 0.5, 0.5]\nradius = 0.1\nmaterial = \"jelly\"\n"
      "[emitter.jelly]\nyoungs_modulus_Pa = 1e12\n",
      "a.toml");
}

StepSituation at_start(const scene::SceneConfig& scene) {
  return {.frame = 0,
          .time_s = 0,
          .remaining_s = scene.time.frame_dt_s,
          .speed_m_s = 0,
          .sound_m_s = 20,
          .is_start = true};
}

void expect_cause(const scene::SceneConfig& scene, const StepSituation& now,
                  const std::vector<std::string>& parts) {
  expect_error(ErrorCode::kNumeric, parts, [&] { choose_step_length(scene, now); });
}

TEST(StepLength, FollowsFromTheCflNumber) {
  const scene::SceneConfig scene = two_balls();
  const StepLength length = choose_step_length(scene, at_start(scene));
  EXPECT_LE(length.dt_s, 0.4 * scene.dx_m() / 20);
  EXPECT_GT(length.dt_s, 0.39 * scene.dx_m() / 20);
  EXPECT_EQ(length.bound, StepBound::kSound);
}

TEST(StepLength, SaysWhatBoundsIt) {
  scene::SceneConfig scene = two_balls();
  StepSituation now = at_start(scene);
  now.speed_m_s = 100;
  EXPECT_EQ(choose_step_length(scene, now).bound, StepBound::kSpeed);
  scene.time.max_dt_s = 1e-6;
  EXPECT_EQ(choose_step_length(scene, now).bound, StepBound::kLongest);
  EXPECT_EQ(to_text(StepBound::kLongest), "time.max_dt_s");
}

// Seen to fail: a cfl of 1e-12 was to be mended by a softer material.
TEST(StepLength, SaysThatTheCflNumberIsTooSmall) {
  scene::SceneConfig scene = two_balls();
  scene.time.cfl = 1e-12;
  expect_cause(scene, at_start(scene),
               {"frame 1: at t = 0 s steps of ",
                " s, as time.cfl = 1e-12 asks for, are more than 1e+07 in a "
                "frame; raise time.cfl (usually 0.4)"});
  StepSituation later = at_start(scene);
  later.is_start = false;
  expect_cause(scene, later, {"raise time.cfl"});
  scene.time.cfl = 0.4;
  scene.time.max_dt_s = 1e-12;
  expect_cause(scene, at_start(scene), {"as time.max_dt_s = 1e-12 s asks for", "raise time.max_dt_s"});
}

TEST(StepLength, NamesTheMaterialThatIsTooStiff) {
  scene::SceneConfig scene = two_balls();
  scene.time.cfl = 0.3;  // is smaller than usual, but not the cause
  StepSituation now = at_start(scene);
  now.sound_m_s = 1e9;
  expect_cause(scene, now,
               {"waves move with 1e+09 m/s through the jelly of emitter[1], which needs steps of ",
                "; soften it, or take a coarser grid"});
}

TEST(StepLength, NamesCollidersAndWaterThatNeedShortSteps) {
  scene::SceneConfig scene = scene::parse_scene(
      "grid.resolution = 256\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.3, 0.5, 0.5]\nradius = "
      "0.1\nmaterial = \"water\"\n"
      "[[collider]]\nshape = \"sphere\"\ncenter = [0.7, 0.5, 0.5]\nradius = 0.1\nvelocity = [1e6, 0, 0]\n",
      "a.toml");
  expect_cause(
      scene, at_start(scene),
      {"collider[0] moves with 1e+06 m/s, which needs steps of ", "; slow it down, or take a coarser grid"});
  scene.colliders[0].velocity = {50, 0, 0};
  const double cell = scene.dx_m();
  EXPECT_LE(choose_step_length(scene, at_start(scene)).dt_s, scene.time.cfl * cell / 50);
  scene.emitters[0].water.viscosity_Pa_s = 100;
  EXPECT_LE(choose_step_length(scene, at_start(scene)).dt_s, cell * cell / (2 * 3 * 0.1));
  scene.emitters[0].water.viscosity_Pa_s = 1e9;
  expect_cause(
      scene, at_start(scene),
      {"the water of emitter[0] has a viscosity of 1e+06 m^2/s, which needs steps of ", "; lower it, or "});
}

TEST(StepLength, NamesVelocitiesAndGravityThatAreTooLarge) {
  const scene::SceneConfig scene = two_balls();
  StepSituation now = at_start(scene);
  now.speed_m_s = 1e9;
  expect_cause(scene, now, {"particles move with 1e+09 m/s and gravity is 9.81 m/s^2, ", "; lower them, "});
}

TEST(StepLength, SaysThatAFrameIsTooLong) {
  scene::SceneConfig scene = two_balls();
  scene.time.frame_dt_s = 1e5;
  expect_cause(scene, at_start(scene), {"more than 1e+07 in a frame of 1e+05 s; have shorter frames"});
  scene.time.max_dt_s = 1e-5;  // bounds the steps, but ten times longer ones would be too many as well
  expect_cause(scene, at_start(scene), {"have shorter frames"});
  scene.time.max_dt_s = 1e-12;
  expect_cause(scene, at_start(scene), {"raise time.max_dt_s, and have shorter frames"});
}

TEST(StepLength, SaysThatMotionHasBlownUp) {
  scene::SceneConfig scene = two_balls();
  StepSituation now = at_start(scene);
  now.is_start = false, now.speed_m_s = 1e12;
  expect_cause(scene, now, {"lower time.cfl (now 0.4) or time.max_dt_s, or soften the material"});
  // Shorter frames would hide it for a while.
  scene.time.frame_dt_s = now.remaining_s = 0.5;
  now.speed_m_s = 0, now.sound_m_s = 1e6;
  expect_cause(scene, now, {"lower time.cfl (now 0.4)"});
  now.is_start = true;
  expect_cause(scene, now, {"have shorter frames"});
}

}  // namespace
}  // namespace coppice::mpm
