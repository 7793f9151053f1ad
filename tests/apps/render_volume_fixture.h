// Volumes made on the host from functions, and a framebuffer to draw them into. Needs EGL.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "apps/render/gl_context.h"
#include "apps/render/volume_renderer.h"
#include "apps/render/volume_target.h"
#include "core/hash.h"
#include "tests/apps/make_or_skip.h"

namespace coppice::render {

// A cell's value, by its coordinate.
using CellFunction = std::function<float(int, int, int)>;

// Bricks that have values, or all within the box if so asked; cells outside of it are zero.
inline BrickVolume volume_of(const CellFunction& f, CellCoord low, CellCoord high, bool with_empty = false,
                             int dim = 3) {
  BrickVolume volume;
  volume.dim = dim;
  volume.format = BrickFormat::kFloat;
  const auto value = [&](int x, int y, int z) {
    if (dim == 2) z = 0;
    const bool is_in = x >= low.x && x < high.x && y >= low.y && y < high.y && z >= low.z && z < high.z;
    return is_in ? f(x, y, z) : 0.0f;
  };
  const auto first = [](int cell) { return (cell - 1) & -8; };
  for (int x = first(low.x); x < high.x; x += 8) {
    for (int y = first(low.y); y < high.y; y += 8) {
      for (int z = dim == 2 ? 0 : first(low.z); z < high.z; z += 8) {
        std::vector<float> values;
        for (int i = 0; i < kBrickValues; ++i) values.push_back(value(x + i / 81, y + i / 9 % 9, z + i % 9));
        const auto [min, max] = std::minmax_element(values.begin(), values.end());
        const float infinity = std::numeric_limits<float>::infinity();
        bool has_values = false, is_finite = true;
        for (const float v : values) has_values |= v != 0, is_finite &= std::isfinite(v);
        if (!has_values && !with_empty) continue;
        volume.origins.push_back({x, y, z});
        volume.stats.push_back({is_finite ? *min : -infinity, is_finite ? *max : infinity,
                                hash64(std::as_bytes(std::span(values)))});
        const auto bytes = std::as_bytes(std::span(values));
        volume.values.insert(volume.values.end(), bytes.begin(), bytes.end());
      }
    }
  }
  return volume;
}

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgba;  // rows from below
  std::vector<float> depth;

  const uint8_t* at(int x, int y) const { return &rgba[4 * static_cast<size_t>(y * width + x)]; }
  float depth_at(int x, int y) const { return depth[static_cast<size_t>(y * width + x)]; }
  int num_drawn() const {
    int n = 0;
    for (int i = 0; i < width * height; ++i) n += rgba[4 * static_cast<size_t>(i) + 3] != 0;
    return n;
  }
  bool is_magenta(int x, int y) const { return at(x, y)[0] > 250 && at(x, y)[1] < 5 && at(x, y)[2] > 250; }
};

class VolumeTest : public testing::Test {
 protected:
  void SetUp() override {
    make_or_skip(context_);
    if (!context_) return;
    current_ = std::make_unique<GlContext::Current>(*context_);
    target_.emplace(gl());
    atlas_.emplace(gl());
    renderer_.emplace(gl());
    view_.camera.look_at = Vec3f(0, 0, 0);
    view_.camera.position = Vec3f(0, 0, 80);
    view_.camera.fov_deg = 40;
    view_.planes = {1, 300};
    view_.width = 160, view_.height = 120;
    view_.style.opacity = {{0, 0}, {1, 0.1f}};
  }
  void TearDown() override {
    renderer_.reset(), atlas_.reset(), target_.reset();
    current_.reset();
  }
  const GlFunctions& gl() const { return context_->gl(); }

  void begin_frame() {
    target_->begin(view_.width, view_.height);
    GLint id = 0;
    gl().GetIntegerv(GL_FRAMEBUFFER_BINDING, &id);
    view_.framebuffer = static_cast<GLuint>(id);
  }
  Picture read() {
    Picture p{view_.width, view_.height, {}, {}};
    const auto n = static_cast<size_t>(p.width) * static_cast<size_t>(p.height);
    p.rgba.resize(4 * n), p.depth.resize(n);
    target_->bind();
    gl().PixelStorei(GL_PACK_ALIGNMENT, 1);
    gl().ReadPixels(0, 0, p.width, p.height, GL_RGBA, GL_UNSIGNED_BYTE, p.rgba.data());
    gl().ReadPixels(0, 0, p.width, p.height, GL_DEPTH_COMPONENT, GL_FLOAT, p.depth.data());
    return p;
  }
  Picture draw() {
    begin_frame();
    EXPECT_TRUE(renderer_->draw(*atlas_, view_, std::numeric_limits<double>::infinity()));
    return read();
  }
  Picture draw(const BrickVolume& volume) {
    atlas_->update(volume);
    return draw();
  }

  // The ray of a pixel in cells of the tree.
  struct CpuRay {
    Vec3f origin, direction;
  };
  CpuRay ray_of(int x, int y) const {
    const Camera& c = view_.camera;
    const float aspect = static_cast<float>(view_.width) / static_cast<float>(view_.height);
    const Vec2f half = c.half_extent(aspect);
    const Vec2f at((2 * (x + 0.5f) / view_.width - 1) * half.x(),
                   (2 * (y + 0.5f) / view_.height - 1) * half.y());
    const Mat4f world_from_view = c.view_from_world().inverse();
    const bool flat = c.projection == Projection::kOrthographic;
    const Vec4f origin = flat ? Vec4f(at.x(), at.y(), 0, 1) : Vec4f(0, 0, 0, 1);
    const Vec4f direction = flat ? Vec4f(0, 0, -1, 0) : Vec4f(at.x(), at.y(), -1, 0);
    return {((world_from_view * origin).head<3>() - view_.placement.origin_m) / view_.placement.cell_m,
            (world_from_view * direction).head<3>().normalized()};
  }
  // Camera distance of a depth in the framebuffer, along the view, in metres.
  float distance_of(float depth) const {
    const auto [n, f] = view_.planes;
    if (view_.camera.projection == Projection::kOrthographic) return n + depth * (f - n);
    return n * f / (f - depth * (f - n));
  }

  std::unique_ptr<GlContext> context_;
  std::unique_ptr<GlContext::Current> current_;
  std::optional<VolumeTarget> target_;
  std::optional<BrickAtlas> atlas_;
  std::optional<VolumeRenderer> renderer_;
  VolumeView view_;
};

}  // namespace coppice::render
