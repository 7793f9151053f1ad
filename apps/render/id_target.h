// A framebuffer that holds which particle each pixel sees, and its depth; shading comes later, once per
// pixel.
#pragma once

#include "apps/render/gl_objects.h"

namespace coppice::render {

class IdTarget {
 public:
  // Throws Error(kUnavailable) or Error(kOutOfMemory) when the driver cannot have it.
  IdTarget(const GlFunctions& gl, int width, int height);

  GLuint framebuffer() const { return framebuffer_.id(); }
  GLuint ids() const { return ids_.id(); }      // R32UI; 0 where there is nothing
  GLuint depth() const { return depth_.id(); }  // f32; 1 where there is nothing
  int width() const { return width_; }
  int height() const { return height_; }
  // Binds the framebuffer and its viewport, and tests depth from here on.
  void bind() const;
  void clear() const;  // must be bound

 private:
  const GlFunctions& gl_;
  int width_;
  int height_;
  GlTexture ids_;
  GlTexture depth_;
  GlFramebuffer framebuffer_;
};

// Throws Error(kUnavailable) when the framebuffer that is bound cannot be drawn into.
void require_complete_framebuffer(const GlFunctions& gl, const char* what);

}  // namespace coppice::render
