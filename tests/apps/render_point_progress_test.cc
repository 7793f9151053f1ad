// Drafts of live particles and what replaces them, over several calls. Needs EGL.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/apps/points_fixture.h"

namespace coppice::render {
namespace {

class PointProgress : public RenderPoints {};

TEST_F(PointProgress, AccumulatedPictureIsThatOfOneCallBitForBit) {
  add_ball(60);  // 113,000 points: several chunks
  set_points();
  const Image at_once = draw(view(), kAllTime);
  ASSERT_TRUE(renderer_->is_complete());
  set_points();
  Image image;
  // The draft, then eight chunks.
  EXPECT_EQ(draw_until_complete(view(), &image), 9);
  EXPECT_TRUE(same(at_once, image));
  EXPECT_TRUE(same(at_once, draw(view(), kNoTime))) << "a complete picture stays";
}

TEST_F(PointProgress, DraftIsClosedAndCloseToTheCompletePicture) {
  add_ball(60);
  const Image complete = draw_all();
  set_points();
  const Image draft = draw(view(), kNoTime);
  EXPECT_FALSE(renderer_->is_complete());
  const Blob whole = find_blob(complete, is_drawn);
  const Blob rough = find_blob(draft, is_drawn);
  EXPECT_NEAR(rough.x, whole.x, 1.0);
  EXPECT_NEAR(rough.y, whole.y, 1.0);
  // An eighth of the points at twice the radius reaches half a spacing farther, and pixels are twice as
  // large.
  EXPECT_NEAR(rough.radius(), whole.radius(), 2.5);
  int holes = 0;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const bool inside = std::hypot(x + 0.5 - whole.x, y + 0.5 - whole.y) < whole.radius() - 2.0;
      holes += inside && is_black(draft.pixel(x, y));
    }
  }
  EXPECT_LT(holes, 1e-3 * whole.count);
  // Between draft and complete picture nothing of the body is missing, either.
  const Image between = draw(view(), kNoTime);
  EXPECT_FALSE(renderer_->is_complete());
  EXPECT_FALSE(same(between, draft));
  EXPECT_GE(find_blob(between, is_drawn).count, rough.count);
}

TEST_F(PointProgress, PointsOfTheirOwnSizeComeBeforeTheDraft) {
  // A sheet, all of whose points are seen.
  for (int i = 0; i < 300 * 400; ++i) {
    const Vec3f p(static_cast<float>(i % 300) / 150.0f - 1.0f, static_cast<float>(i / 300) / 200.0f - 1.0f,
                  0.0f);
    add(p, static_cast<float>(i % 3));
  }
  layer_.radius_m = 0.004f;
  set_points();
  const View large = view(4 * kSide, 4 * kSide);
  const Image complete = draw(large, kAllTime);
  set_points();
  const auto equal_pixels = [&](const Image& image) {
    int equal = 0;
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        equal += is_drawn(image.pixel(x, y)) && image.pixel(x, y) == complete.pixel(x, y);
      }
    }
    return equal;
  };
  const int covered = find_blob(complete, is_drawn).count;
  EXPECT_LT(equal_pixels(draw(large, kNoTime)), 0.1 * covered) << "the draft";
  draw(large, kNoTime);
  draw(large, kNoTime);
  // Three of eight chunks.
  EXPECT_GT(equal_pixels(draw(large, kNoTime)), 0.3 * covered);
}

TEST_F(PointProgress, NewCameraSizeAndPointsBeginAnew) {
  add_ball(60);
  set_points();
  Image image;
  const auto begins_anew = [&](const View& next) {
    EXPECT_GT(draw_until_complete(view(), &image), 0);
    draw(next, kNoTime);
    return !renderer_->is_complete();
  };
  EXPECT_FALSE(begins_anew(view()));
  EXPECT_TRUE(begins_anew(view(kSide, kSide / 2)));
  EXPECT_TRUE(begins_anew(View(camera_, ClipPlanes{1.0f, 9.0f}, kSide, kSide)));
  Camera moved = camera_;
  moved.position.x() += 0.01f;
  EXPECT_TRUE(begins_anew(View(moved, ClipPlanes{1.0f, 8.0f}, kSide, kSide)));
  EXPECT_GT(draw_until_complete(view(), &image), 0);
  for (PackedPoint& p : points_) p.value = 1.0f;
  set_points();
  EXPECT_FALSE(renderer_->is_complete());
  const Image draft = draw(view(), kNoTime);
  EXPECT_EQ(find_blob(draft, is_reddish).count, 0) << "nothing is left of the points before";
  EXPECT_GT(draw_until_complete(view(), &image), 0);
  EXPECT_EQ(find_blob(image, is_reddish).count, 0);
  EXPECT_GT(find_blob(image, is_greenish).count, 1000);
}

TEST_F(PointProgress, ViewThatChangedMidwayGivesThePictureOfThatViewAlone) {
  add_ball(60);
  set_points();
  Camera moved = camera_;
  moved.position = Vec3f(1.0f, 0.5f, 3.5f);
  const View second(moved, ClipPlanes{1.0f, 8.0f}, kSide, kSide);
  const Image expected = draw(second, kAllTime);
  set_points();
  for (int i = 0; i < 4; ++i) draw(view(), kNoTime);
  ASSERT_FALSE(renderer_->is_complete());
  Image image;
  EXPECT_GT(draw_until_complete(second, &image), 2);
  EXPECT_TRUE(same(expected, image));
}

TEST_F(PointProgress, PickGivesIndicesOfTheLayerWhateverTheDrawingOrder) {
  add_ball(60);
  const Image image = draw_all();
  for (int x = 40; x <= 120; x += 8) {
    const auto hit = renderer_->wait_and_pick(x, kSide / 2);
    ASSERT_TRUE(hit.has_value()) << x;
    const Vec3f& p = points_[hit->index].position;
    const Vec2f at = camera_.pixel_from_world(p, kSide, kSide);
    const double radius = outline_radius_px(camera_, p, layer_.radius_m, kSide);
    EXPECT_NEAR(at.x(), x + 0.5, radius + 1.0);
    EXPECT_NEAR(at.y(), kSide / 2 + 0.5, radius + 1.0);
    EXPECT_GT(p.z(), 0.0f) << "the near side";
  }
  // A draft has indices of the whole set, too.
  set_points();
  draw(view(), kNoTime);
  const auto hit = renderer_->wait_and_pick(kSide / 2, kSide / 2);
  ASSERT_TRUE(hit.has_value());
  EXPECT_LT(points_[hit->index].position.head<2>().norm(), 8.0f * layer_.radius_m);
}

}  // namespace
}  // namespace coppice::render
