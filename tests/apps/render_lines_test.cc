// Lines in pictures: edges of boxes at the predicted pixels, depth, colours. Needs EGL.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/render/gl_context.h"
#include "apps/render/line_renderer.h"
#include "apps/render/offscreen_target.h"
#include "core/error.h"
#include "tests/apps/image_blobs.h"
#include "tests/apps/make_or_skip.h"
#include "tests/apps/small_gl_device.h"

namespace coppice::render {
namespace {

constexpr int kSide = 160;

class RenderLines : public testing::Test {
 protected:
  void SetUp() override {
    make_or_skip(context_);
    if (!context_) return;
    current_ = std::make_unique<GlContext::Current>(*context_);
    lines_ = std::make_unique<LineRenderer>(context_->gl());
    target_ = std::make_unique<OffscreenTarget>(context_->gl(), kSide, kSide, true);
    camera_.position = Vec3f(1.5f, 1.2f, 4.0f);
    camera_.fov_deg = 40.0f;
  }

  void TearDown() override {
    target_.reset();
    lines_.reset();
    current_.reset();
  }

  Image draw() {
    const GlFunctions& gl = context_->gl();
    const GLfloat black[4] = {0, 0, 0, 1};
    const GLfloat farthest = 1.0f;
    gl.BindFramebuffer(GL_FRAMEBUFFER, target_->framebuffer());
    gl.ClearBufferfv(GL_COLOR, 0, black);
    gl.ClearBufferfv(GL_DEPTH, 0, &farthest);
    lines_->draw(View(camera_, ClipPlanes{1.0f, 8.0f}, kSide, kSide), target_->framebuffer());
    return target_->wait_and_read();
  }

  // How many of the points along a segment have such a pixel within one pixel of them.
  template <class Predicate>
  int count_along(const Image& image, const Vec3f& from, const Vec3f& to, Predicate is_line) const {
    int found = 0;
    for (int i = 0; i < 50; ++i) {
      const Vec2f at =
          camera_.pixel_from_world(from + (to - from) * (static_cast<float>(i) + 0.5f) / 50.0f, kSide, kSide);
      bool here = false;
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          here |= is_line(image.pixel(static_cast<int>(at.x()) + dx, static_cast<int>(at.y()) + dy));
        }
      }
      found += here;
    }
    return found;
  }

  std::unique_ptr<GlContext> context_;
  std::unique_ptr<GlContext::Current> current_;
  std::unique_ptr<LineRenderer> lines_;
  std::unique_ptr<OffscreenTarget> target_;
  Camera camera_;
};

Aabb3f box_of(const Vec3f& min, const Vec3f& max) {
  Aabb3f box;
  box.min = min;
  box.max = max;
  return box;
}

// Seen to fail: a second draw went on without the lines, and said nothing.
TEST_F(RenderLines, WhatCouldNotBeCopiedIsCopiedAgain) {
  const SmallGlDevice device(context_->gl());
  lines_ = std::make_unique<LineRenderer>(device.gl);
  lines_->add_box({Vec3f::Constant(-0.5f), Vec3f::Constant(0.5f)}, Rgb(1, 1, 1));
  const View view(camera_, ClipPlanes{1.0f, 8.0f}, kSide, kSide);
  int uploads = 0;
  for (const bool is_full : {true, true, false, true}) {
    SmallGlDevice::is_full = is_full;
    try {
      lines_->draw(view, target_->framebuffer());
    } catch (const Error& error) {
      uploads += std::string(error.what()).find("copying") != std::string::npos;
    }
  }
  SmallGlDevice::is_full = false;
  EXPECT_EQ(uploads, 2) << "it was done in the third call";
  lines_.reset();
}

TEST_F(RenderLines, AllTwelveEdgesOfABoxAreWhereTheCameraProjectsThem) {
  const Aabb3f box = box_of(Vec3f(-0.6f, -0.4f, -0.5f), Vec3f(0.5f, 0.7f, 0.4f));
  lines_->add_box(box, kPrimaries[1]);
  const Image image = draw();
  int edges = 0;
  for (int corner = 0; corner < 8; ++corner) {
    for (int axis = 0; axis < 3; ++axis) {
      if ((corner >> axis & 1) != 0) continue;
      Vec3f from;
      for (int i = 0; i < 3; ++i) from[i] = (corner >> i & 1) != 0 ? box.max[i] : box.min[i];
      Vec3f to = from;
      to[axis] = box.max[axis];
      EXPECT_EQ(count_along(image, from, to, is_greenish), 50) << "corner " << corner << " axis " << axis;
      ++edges;
    }
  }
  EXPECT_EQ(edges, 12);
  // Faces are open: what is drawn is as much as the edges.
  EXPECT_LT(find_blob(image, is_greenish).count, 12 * 70);
  const Vec2f middle = camera_.pixel_from_world(Vec3f(0.5f, 0.15f, -0.05f), kSide, kSide);
  EXPECT_FALSE(is_greenish(image.pixel(static_cast<int>(middle.x()), static_cast<int>(middle.y()))));
}

TEST_F(RenderLines, SegmentsHaveTheirColoursAndNearerOnesHideFarther) {
  lines_->add_segment(Vec3f(-1.0f, 0.0f, 0.0f), Vec3f(1.0f, 0.0f, 0.0f), kPrimaries[0]);
  lines_->add_segment(Vec3f(0.0f, -1.0f, 0.0f), Vec3f(0.0f, 1.0f, 0.0f), kPrimaries[2]);
  const Image image = draw();
  EXPECT_EQ(count_along(image, Vec3f(-1.0f, 0.0f, 0.0f), Vec3f(-0.1f, 0.0f, 0.0f), is_reddish), 50);
  EXPECT_EQ(count_along(image, Vec3f(0.0f, 0.1f, 0.0f), Vec3f(0.0f, 1.0f, 0.0f), is_bluish), 50);
  // Both ends of another pair project to the same pixels: the nearer is seen, in either order.
  for (const bool near_first : {true, false}) {
    lines_->clear();
    const auto toward = [&](const Vec3f& p) { return Vec3f(p + 0.3f * (camera_.position - p)); };
    const Vec3f from(-0.5f, 0.3f, 0.0f);
    const Vec3f to(0.5f, -0.3f, 0.0f);
    if (!near_first) lines_->add_segment(from, to, kPrimaries[0]);
    lines_->add_segment(toward(from), toward(to), kPrimaries[1]);
    if (near_first) lines_->add_segment(from, to, kPrimaries[0]);
    const Image crossed = draw();
    EXPECT_EQ(count_along(crossed, from, to, is_greenish), 50);
    EXPECT_LT(find_blob(crossed, is_reddish).count, 20);  // rounding of the projection at some pixels
  }
}

TEST_F(RenderLines, ClearAndEmptyBoxesLeaveNothing) {
  lines_->add_box(Aabb3f(), kPrimaries[0]);
  EXPECT_EQ(find_blob(draw(), is_reddish).count, 0);
  lines_->add_box(box_of(Vec3f::Constant(-0.5f), Vec3f::Constant(0.5f)), kPrimaries[0]);
  EXPECT_GT(find_blob(draw(), is_reddish).count, 100);
  lines_->clear();
  EXPECT_EQ(find_blob(draw(), is_reddish).count, 0);
}

TEST_F(RenderLines, TwoHundredThousandBoxesAreOneDraw) {
  // The last box alone is green and in front of all others.
  for (int i = 0; i < 200000; ++i) {
    const Vec3f at(static_cast<float>(i % 64), static_cast<float>(i / 64 % 64), static_cast<float>(i / 4096));
    const Vec3f min = (at / 64.0f).array() - 0.9f;
    lines_->add_box(box_of(min, Vec3f(min.array() + 1.0f / 64.0f)), kPrimaries[2]);
  }
  const Aabb3f last = box_of(Vec3f(0.2f, 0.1f, 1.0f), Vec3f(0.5f, 0.4f, 1.2f));
  lines_->add_box(last, kPrimaries[1]);
  const Image image = draw();
  EXPECT_GT(find_blob(image, is_bluish).count, 1000);
  Vec3f corner = last.max;
  corner.x() = last.min.x();
  EXPECT_EQ(count_along(image, corner, last.max, is_greenish), 50);
}

}  // namespace
}  // namespace coppice::render
