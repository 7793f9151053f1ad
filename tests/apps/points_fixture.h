// Draws points without a window, for tests of what is in the picture. Skips where there is no EGL.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "apps/render/gl_context.h"
#include "apps/render/offscreen_target.h"
#include "apps/render/point_renderer.h"
#include "tests/apps/image_blobs.h"
#include "tests/apps/make_or_skip.h"

namespace coppice::render {

constexpr int kSide = 160;
constexpr double kNoTime = 0.0;  // one chunk per call
constexpr double kAllTime = 1e9;

inline bool is_magenta(Rgba8 c) { return c[0] > 2 * c[1] && c[2] > 2 * c[1] && c[0] > 100 && c[2] > 100; }
inline bool is_black(Rgba8 c) { return c[0] == 0 && c[1] == 0 && c[2] == 0; }
inline bool is_drawn(Rgba8 c) { return !is_black(c); }

class RenderPoints : public testing::Test {
 protected:
  void SetUp() override {
    make_or_skip(context_);
    if (!context_) return;
    current_ = std::make_unique<GlContext::Current>(*context_);
    renderer_ = std::make_unique<PointRenderer>(context_->gl());
    layer_.palette = kPrimaries;
    layer_.is_categorical = true;
    camera_.position = Vec3f(0.0f, 0.0f, 4.0f);
    camera_.fov_deg = 40.0f;
  }

  void TearDown() override {
    target_.reset();
    renderer_.reset();
    current_.reset();
  }

  void add(const Vec3f& position, float value = 0.0f) { points_.push_back({position, value}); }

  // A filled ball of points in a grid, sorted by z: block order of a kind.
  void add_ball(int points_per_side) {
    const float spacing = 2.0f / static_cast<float>(points_per_side);
    for (int i = 0; i < points_per_side * points_per_side * points_per_side; ++i) {
      const Vec3i ijk(i % points_per_side, i / points_per_side % points_per_side,
                      i / points_per_side / points_per_side);
      const Vec3f p = (ijk.cast<float>().array() + 0.5f) * spacing - 1.0f;
      if (p.norm() < 1.0f) add(p, static_cast<float>(i % 3));
    }
    layer_.radius_m = 0.5f * spacing;
  }

  void set_points() {
    layer_.points = points_;
    renderer_->set_points(layer_);
  }

  View view(int width = kSide, int height = kSide) const {
    return View(camera_, ClipPlanes{1.0f, 8.0f}, width, height);
  }

  // Clears the caller's framebuffer to black and draws into it.
  Image draw(const View& view, double most_ms) {
    const GlFunctions& gl = context_->gl();
    if (!target_ || target_->width() != view.width_px() || target_->height() != view.height_px()) {
      target_ = std::make_unique<OffscreenTarget>(gl, view.width_px(), view.height_px(), true);
    }
    const GLfloat black[4] = {0, 0, 0, 1};
    const GLfloat farthest = 1.0f;
    gl.BindFramebuffer(GL_FRAMEBUFFER, target_->framebuffer());
    gl.ClearBufferfv(GL_COLOR, 0, black);
    gl.ClearBufferfv(GL_DEPTH, 0, &farthest);
    renderer_->draw(view, target_->framebuffer(), most_ms);
    return target_->wait_and_read();
  }

  Image draw_all() {
    set_points();
    Image image = draw(view(), kAllTime);
    EXPECT_TRUE(renderer_->is_complete());
    return image;
  }

  // Draws until the picture is complete; -1 when it is not after many calls.
  int draw_until_complete(const View& view, Image* image) {
    for (int calls = 1; calls <= 100; ++calls) {
      *image = draw(view, kNoTime);
      if (renderer_->is_complete()) return calls;
    }
    return -1;
  }

  Rgba8 pixel_at(const Image& image, const Vec3f& p) const {
    const Vec2f at = camera_.pixel_from_world(p, image.width(), image.height());
    return image.pixel(static_cast<int>(at.x()), static_cast<int>(at.y()));
  }

  std::unique_ptr<GlContext> context_;
  std::unique_ptr<GlContext::Current> current_;
  std::unique_ptr<PointRenderer> renderer_;
  std::unique_ptr<OffscreenTarget> target_;
  PointLayer layer_;
  std::vector<PackedPoint> points_;
  Camera camera_;
};

inline bool same(const Image& a, const Image& b) {
  return a.bytes().size() == b.bytes().size() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
}

}  // namespace coppice::render
