// A scene's pictures have the camera's place where the scene has none, and show how materials look.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apps/run/frame_view.h"
#include "apps/scene/scene.h"

namespace coppice {
namespace {

scene::SceneConfig tall_scene(const std::string& more = "") {
  return scene::parse_scene(fmt::format(R"(dim = 3
[domain]
max = [4.0, 6.0, 4.0]
[[emitter]]
shape = "sphere"
center = [2.0, 0.5, 2.0]
radius = 0.3
material = "water"
{})",
                                        more),
                            "tall.toml");
}

// How far from the middle of a frame of 2 x 2 the corners of a box are, at most.
float reach_of(const render::Camera& camera, const Aabb3f& box) {
  float reach = 0;
  for (int i = 0; i < 8; ++i) {
    const Vec3f corner((i & 1) != 0 ? box.max.x() : box.min.x(), (i & 2) != 0 ? box.max.y() : box.min.y(),
                       (i & 4) != 0 ? box.max.z() : box.min.z());
    reach = std::max(reach, (camera.pixel_from_world(corner, 2, 2) - Vec2f::Ones()).cwiseAbs().maxCoeff());
  }
  return reach;
}

TEST(FrameView, CameraFillsTheFrameWithWhatThereIs) {
  const scene::SceneConfig scene = tall_scene();
  const Aabb3f bounds = scene_bounds(scene);
  const Vec3f low(1.7f, 0.2f, 1.7f), high(2.3f, 0.8f, 2.3f);
  EXPECT_TRUE(bounds.contains(low) && bounds.contains(high));
  EXPECT_EQ(bounds.min.y(), 0.0f);
  EXPECT_LT(bounds.max.y(), 1.0f);
  const render::Camera camera = camera_of(scene, 1, 0);
  const float reach = reach_of(camera, bounds);
  EXPECT_LT(reach, 1.0f);
  EXPECT_GT(reach, 0.9f);
}

// Seen to fail: a wide angle made things small, since the camera stood where 30 degrees want it.
TEST(FrameView, CameraFillsTheFrameWithAnyAngleOfView) {
  for (const char* fov_deg : {"10", "90", "150"}) {
    const scene::SceneConfig scene = tall_scene(fmt::format("[output.camera]\nfov_deg = {}\n", fov_deg));
    const float reach = reach_of(camera_of(scene, 1, 0), scene_bounds(scene));
    EXPECT_LT(reach, 1.0f) << fov_deg;
    EXPECT_GT(reach, 0.9f) << fov_deg;
  }
}

TEST(FrameView, CameraSeesAllWhereThingsMayGoAnywhere) {
  for (const char* more : {"velocity = [1.0, 0.0, 0.0]",
                           "[[collider]]\nshape = \"sphere\"\ncenter = [1.0, 1.0, 1.0]\n"
                           "radius = 0.2\nvelocity = [0.5, 0.0, 0.0]"}) {
    const scene::SceneConfig scene = tall_scene(more);
    EXPECT_EQ(scene_bounds(scene).max, Vec3f(4, 6, 4)) << more;
    EXPECT_LT(reach_of(camera_of(scene, 1, 0), scene_bounds(scene)), 1.0f) << more;
  }
}

TEST(FrameView, BodiesHaveTheWidestSpacingOfTheirEmitters) {
  scene::SceneConfig scene = tall_scene("");
  EXPECT_EQ(body_spacing_m(scene)[1], 0.0f) << "there is no jelly";
  scene.emitters[0].particles_per_cell = 8;
  scene.emitters.push_back(scene.emitters[0]);
  scene.emitters[1].particles_per_cell = 1;
  scene.emitters.push_back(scene.emitters[0]);
  scene.emitters[2].material = scene::MaterialKind::kJelly;
  const auto dx = static_cast<float>(scene.dx_m());
  EXPECT_FLOAT_EQ(body_spacing_m(scene)[0], dx);
  EXPECT_FLOAT_EQ(body_spacing_m(scene)[1], 0.5f * dx);
  EXPECT_FLOAT_EQ(particle_radius_m(scene), 0.3f * dx);
  scene.output.color = scene::ColorBy::kEmitter;  // water is painted as jelly is
  EXPECT_EQ(body_spacing_m(scene)[0], 0.0f);
  EXPECT_FLOAT_EQ(body_spacing_m(scene)[1], dx);
}

TEST(FrameView, CameraOfTheSceneStays) {
  const render::Camera camera =
      camera_of(tall_scene("[output.camera]\nposition = [9.0, 2.0, 9.0]\ntarget = [1.0, 1.0, 1.0]"), 1, 0);
  EXPECT_EQ(camera.position, Vec3f(9, 2, 9));
  EXPECT_EQ(camera.look_at, Vec3f(1, 1, 1));
}

// Water that shows a value is painted, for a clear body could not show it.
TEST(FrameView, WaterIsClearUnlessItShowsAValue) {
  EXPECT_EQ(look_of(scene::MaterialKind::kWater, scene::ColorBy::kMaterial), render::Look::kWater);
  for (const auto color : {scene::ColorBy::kSpeed, scene::ColorBy::kEmitter, scene::ColorBy::kVolumeRatio})
    EXPECT_EQ(look_of(scene::MaterialKind::kWater, color), render::Look::kJelly);
  mpm::ParticleSnapshot particles;
  particles.position = {Vec3f(2, 0.5f, 2)};
  particles.material = {0};
  particles.emitter = {0};
  const ShownParticles shown = show_particles(tall_scene(), particles);
  const render::RenderScene view = make_frame_view(tall_scene(), shown, 0);
  ASSERT_EQ(view.looks.size(), 1u);
  EXPECT_EQ(view.looks[0], render::Look::kWater);
}

}  // namespace
}  // namespace coppice
