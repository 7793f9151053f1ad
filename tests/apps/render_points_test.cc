// Live particles in pictures: where they appear, what hides what, colours, picking. Needs EGL.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/apps/points_fixture.h"

namespace coppice::render {
namespace {

// The sphere is drawn in a style of its own at each of these sizes: exactly, as a sprite, flat.
TEST_F(RenderPoints, SphereAppearsWhereTheCameraProjectsItAndAsLarge) {
  const Vec3f center(0.4f, 0.3f, 0.2f);
  add(center);
  for (const float radius_m : {0.3f, 0.1f, 0.05f, 0.03f}) {
    layer_.radius_m = radius_m;
    const Blob blob = find_blob(draw_all(), is_reddish);
    const Vec2f expected = camera_.pixel_from_world(center, kSide, kSide);
    EXPECT_NEAR(blob.x, expected.x(), 0.7) << radius_m;
    EXPECT_NEAR(blob.y, expected.y(), 0.7) << radius_m;
    EXPECT_NEAR(blob.radius(), outline_radius_px(camera_, center, radius_m, kSide), 0.5) << radius_m;
  }
  layer_.radius_m = 1e-5f;  // stays visible
  const Blob dot = find_blob(draw_all(), is_reddish);
  EXPECT_GE(dot.count, 1);
  EXPECT_LE(dot.count, 4);
}

TEST_F(RenderPoints, DepthIsThatOfTheSphere) {
  add(Vec3f::Zero());
  const Mat4f clip = view().clip_from_view;
  const auto depth_at = [&](float z) {
    const float view_z = z - 4.0f;
    return 0.5f * (clip(2, 2) * view_z + clip(2, 3)) / -view_z + 0.5f;
  };
  for (const float radius_m : {0.3f, 0.1f, 0.03f}) {
    layer_.radius_m = radius_m;
    draw_all();
    const std::vector<float> depth = target_->wait_and_read_depth();
    const auto at = [&](int x, int y) {
      return depth[static_cast<size_t>(y) * kSide + static_cast<size_t>(x)];
    };
    // A pixel beside the axis is seen at most half a pixel off it.
    EXPECT_NEAR(at(kSide / 2, kSide / 2), depth_at(radius_m), 0.1f * (depth_at(0.0f) - depth_at(radius_m)));
    EXPECT_EQ(at(2, 2), 1.0f);
    const float pixel_m = view().pixel_m * 4.0f;
    const int x = static_cast<int>(0.7f * radius_m / pixel_m);
    const float off_m = (static_cast<float>(x) + 0.5f) * pixel_m;
    if (radius_m < 0.05f) continue;  // flat
    const float surface_z = std::sqrt(radius_m * radius_m - off_m * off_m);
    EXPECT_NEAR(at(kSide / 2 + x, kSide / 2), depth_at(surface_z),
                0.1f * (depth_at(0.0f) - depth_at(radius_m)))
        << radius_m;
  }
}

TEST_F(RenderPoints, NearerSphereHidesTheFartherInEitherOrder) {
  for (const float radius_m : {0.3f, 0.1f, 0.02f}) {
    layer_.radius_m = radius_m;
    points_.clear();
    add(Vec3f(0.0f, 0.0f, 0.7f), 0);
    add(Vec3f(0.0f, 0.0f, -0.6f), 1);
    const Image image = draw_all();
    EXPECT_GT(find_blob(image, is_reddish).count, 0) << radius_m;
    EXPECT_EQ(find_blob(image, is_greenish).count, 0) << radius_m;
    std::swap(points_[0], points_[1]);
    EXPECT_TRUE(same(image, draw_all())) << radius_m;
  }
}

TEST_F(RenderPoints, OverlappingSpheresMeetHalfWay) {
  for (const float radius_m : {0.4f, 0.14f}) {
    points_.clear();
    layer_.radius_m = radius_m;
    add(Vec3f(-0.5f * radius_m, 0.0f, 0.0f), 0);
    add(Vec3f(0.5f * radius_m, 0.0f, 0.0f), 1);
    const Image image = draw_all();
    EXPECT_TRUE(is_reddish(image.pixel(kSide / 2 - 2, kSide / 2))) << radius_m;
    EXPECT_TRUE(is_greenish(image.pixel(kSide / 2 + 1, kSide / 2))) << radius_m;
  }
}

TEST_F(RenderPoints, CallersDepthHidesSpheresAndSpheresHideWhatComesLater) {
  layer_.radius_m = 0.3f;
  add(Vec3f(0.0f, 0.0f, 0.0f), 0);
  draw_all();
  PointRenderer other(context_->gl());
  const std::vector<PackedPoint> behind = {{Vec3f(0.2f, 0.0f, -1.0f), 1.0f}};
  const std::vector<PackedPoint> before = {{Vec3f(0.2f, 0.0f, 1.0f), 2.0f}};
  PointLayer layer = layer_;
  layer.points = behind;
  other.set_points(layer);
  other.draw(view(), target_->framebuffer(), kAllTime);
  EXPECT_TRUE(is_reddish(target_->wait_and_read().pixel(kSide / 2, kSide / 2)));
  EXPECT_GT(find_blob(target_->wait_and_read(), is_greenish).count, 10) << "beside the nearer sphere";
  layer.points = before;
  other.set_points(layer);
  other.draw(view(), target_->framebuffer(), kAllTime);
  EXPECT_TRUE(is_bluish(target_->wait_and_read().pixel(kSide / 2, kSide / 2)));
}

TEST_F(RenderPoints, PointsBehindTheCameraAreNotDrawn) {
  add(Vec3f(0.0f, 0.0f, 5.5f), 0);
  add(Vec3f(0.3f, 0.1f, 4.5f), 0);
  add(Vec3f(0.0f, 0.0f, 0.0f), 1);
  for (const float radius_m : {0.3f, 0.1f, 0.02f}) {
    layer_.radius_m = radius_m;
    const Image image = draw_all();
    EXPECT_EQ(find_blob(image, is_reddish).count, 0) << radius_m;
    EXPECT_GT(find_blob(image, is_greenish).count, 0) << radius_m;
  }
}

TEST_F(RenderPoints, CategoriesTakeTheirPaletteColours) {
  layer_.radius_m = 0.2f;
  for (int i = 0; i < 4; ++i)
    add(Vec3f(0.5f * (static_cast<float>(i) - 1.5f), 0.0f, 0.0f), static_cast<float>(i));
  const Image image = draw_all();
  EXPECT_TRUE(is_reddish(pixel_at(image, points_[0].position)));
  EXPECT_TRUE(is_greenish(pixel_at(image, points_[1].position)));
  EXPECT_TRUE(is_bluish(pixel_at(image, points_[2].position)));
  EXPECT_TRUE(is_reddish(pixel_at(image, points_[3].position))) << "modulo the palette";
}

TEST_F(RenderPoints, MiddleOfASphereHasItsColourAndTheRimIsDarker) {
  layer_.radius_m = 0.5f;
  add(Vec3f::Zero(), 1);
  const Image image = draw_all();
  const Rgba8 middle = image.pixel(kSide / 2, kSide / 2);
  for (int channel = 0; channel < 3; ++channel) {
    EXPECT_NEAR(middle[static_cast<size_t>(channel)], 255.0f * kPrimaries[1][channel], 2.0f);
  }
  const double radius = outline_radius_px(camera_, Vec3f::Zero(), 0.5, kSide);
  const Rgba8 rim = image.pixel(kSide / 2 + static_cast<int>(radius) - 2, kSide / 2);
  EXPECT_LT(rim[1], 0.9 * middle[1]);
  EXPECT_GT(rim[1], 0.4 * middle[1]);
}

TEST_F(RenderPoints, ValuesRunThroughTheColourMap) {
  layer_.radius_m = 0.2f;
  layer_.is_categorical = false;
  layer_.map = ColorMap::kCoolwarm;
  add(Vec3f(-0.5f, 0.0f, 0.0f), 3.0f);
  add(Vec3f(0.5f, 0.0f, 0.0f), 7.0f);
  Image image = draw_all();
  EXPECT_TRUE(is_bluish(pixel_at(image, points_[0].position)));
  EXPECT_TRUE(is_reddish(pixel_at(image, points_[1].position)));
  EXPECT_EQ(renderer_->range().min, 3.0f);
  EXPECT_EQ(renderer_->range().max, 7.0f);
  layer_.range = ScalarRange{7.0f, 3.0f};  // reversed
  image = draw_all();
  EXPECT_TRUE(is_reddish(pixel_at(image, points_[0].position)));
}

TEST_F(RenderPoints, BadValuesAreMagentaAndBadPositionsSkippedAndBothCounted) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const bool is_categorical : {false, true}) {
    for (const float radius_m : {0.2f, 0.05f, 0.02f}) {
      layer_.is_categorical = is_categorical;
      layer_.radius_m = radius_m;
      points_.clear();
      add(Vec3f(-0.6f, 0.0f, 0.0f), nan);
      add(Vec3f(0.6f, 0.0f, 0.0f), infinity);
      add(Vec3f(0.0f, 0.0f, 0.0f), 2.0f);
      const Image image = draw_all();
      EXPECT_TRUE(is_magenta(pixel_at(image, points_[0].position)));
      EXPECT_TRUE(is_magenta(pixel_at(image, points_[1].position)));
      EXPECT_FALSE(is_magenta(pixel_at(image, points_[2].position)));
      EXPECT_EQ(renderer_->n_bad_values(), 2u);
      EXPECT_EQ(renderer_->n_bad_positions(), 0u);
      add(Vec3f(nan, 0.0f, 0.0f), 2.0f);
      add(Vec3f(0.0f, -infinity, 0.0f), 2.0f);
      add(Vec3f(1e30f, 0.0f, 0.0f), 2.0f);  // finite, and far outside
      EXPECT_TRUE(same(image, draw_all())) << radius_m;
      EXPECT_EQ(renderer_->n_bad_values(), 2u);
      EXPECT_EQ(renderer_->n_bad_positions(), 2u);
    }
  }
}

TEST_F(RenderPoints, NoPointsAreCompleteAndLeaveThePictureAsItIs) {
  EXPECT_TRUE(renderer_->is_complete());
  EXPECT_EQ(find_blob(draw(view(), kNoTime), is_drawn).count, 0) << "before any points";
  add(Vec3f::Zero());
  layer_.radius_m = 0.3f;
  EXPECT_GT(find_blob(draw_all(), is_drawn).count, 10);
  points_.clear();
  EXPECT_EQ(find_blob(draw_all(), is_drawn).count, 0);
  EXPECT_FALSE(renderer_->wait_and_pick(kSide / 2, kSide / 2).has_value());
}

TEST_F(RenderPoints, PickGivesTheNearestPointOfThePixel) {
  layer_.radius_m = 0.2f;
  add(Vec3f(-0.5f, 0.0f, 0.0f));
  add(Vec3f(0.5f, 0.2f, -0.5f));  // behind the next
  add(Vec3f(0.5f, 0.2f, 0.0f));
  draw_all();
  const auto pick = [&](const Vec3f& p) {
    const Vec2f at = camera_.pixel_from_world(p, kSide, kSide);
    return renderer_->wait_and_pick(static_cast<int>(at.x()), static_cast<int>(at.y()));
  };
  ASSERT_TRUE(pick(points_[0].position).has_value());
  EXPECT_EQ(pick(points_[0].position)->index, 0u);
  EXPECT_EQ(pick(points_[2].position)->index, 2u);
  EXPECT_LT(pick(points_[2].position)->depth, 1.0f);
  EXPECT_FALSE(renderer_->wait_and_pick(1, 1).has_value());
  for (const Vec2i& outside : {Vec2i(-1, 5), Vec2i(5, -1), Vec2i(kSide, 5), Vec2i(5, kSide)}) {
    EXPECT_FALSE(renderer_->wait_and_pick(outside.x(), outside.y()).has_value());
  }
}

TEST_F(RenderPoints, OrthographicPictureIsToScale) {
  camera_.projection = Projection::kOrthographic;
  camera_.height_m = 2.0f;
  add(Vec3f(0.5f, 0.25f, 0.0f), 1);
  for (const float radius_m : {0.2f, 0.05f}) {
    layer_.radius_m = radius_m;
    const Blob blob = find_blob(draw_all(), is_greenish);
    EXPECT_NEAR(blob.x, kSide * 0.75, 0.7);
    EXPECT_NEAR(blob.y, kSide * (0.5 - 0.125), 0.7);
    EXPECT_NEAR(blob.radius(), radius_m * kSide / 2.0, 0.5);
  }
}

TEST_F(RenderPoints, RefusesWhatCannotBeDrawnWithOneClearLine) {
  const auto message_of = [&](auto&& what) -> std::string {
    try {
      what();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message_of([&] { view(0, 360); }), "a picture of 0 x 360 pixels: both must be at least 1");
  layer_.radius_m = 0.0f;
  EXPECT_EQ(message_of([&] { set_points(); }), "a particle's radius of 0 m: it must be positive");
  layer_.radius_m = 0.1f;
  layer_.palette = {};
  EXPECT_EQ(message_of([&] { set_points(); }),
            "particles of categories need a palette of at least one colour");
}

}  // namespace
}  // namespace coppice::render
