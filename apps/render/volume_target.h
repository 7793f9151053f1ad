// Rays draw into this before it is put into the frame; they end at a copy of the frame's depth.
#pragma once
#include <optional>

#include "apps/render/gl_objects.h"

namespace coppice::render {

// Colour (RGBA8) and depth (32 bits) of a picture are textures here.
class VolumeTarget {
 public:
  explicit VolumeTarget(const GlFunctions& gl) : gl_(gl) {}
  // Resizes it, and clears it: transparent, and as far as can be. Leaves it bound. Errors: kUnavailable,
  // kOutOfMemory.
  void begin(int width, int height);
  void bind() const { gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_->id()); }
  GLuint color() const { return color_->id(); }
  GLuint depth() const { return depth_->id(); }
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  const GlFunctions& gl_;
  std::optional<GlTexture> color_, depth_;
  std::optional<GlFramebuffer> framebuffer_;
  int width_ = 0, height_ = 0;
};

// Shaders read a framebuffer's depth from this texture.
class DepthCopy {
 public:
  explicit DepthCopy(const GlFunctions& gl) : gl_(gl) {}
  // Copies the depth of the pixels from `low` up to, not including, `high`, of width x height at the
  // framebuffer's lower left corner. Returns whether it has any. Errors: kUnavailable.
  bool copy(GLuint framebuffer, int width, int height, const Vec2i& low, const Vec2i& high);
  GLuint texture() const { return texture_ ? texture_->id() : 0; }

 private:
  GLenum format_of(GLuint framebuffer) const;

  const GlFunctions& gl_;
  std::optional<GlTexture> texture_;
  std::optional<GlFramebuffer> framebuffer_;
  int width_ = 0, height_ = 0;
  GLenum format_ = 0;
};

}  // namespace coppice::render
