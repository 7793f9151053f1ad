// A framebuffer of our own to draw a frame into, and its read-back as an Image.
//
// Eight bits per channel, and depth on request: antialiasing is ParticleRenderer's supersampling, because
// multisampling does nothing for spheres whose outline and depth are decided in the fragment shader.
#pragma once

#include <optional>
#include <vector>

#include "apps/render/gl_objects.h"
#include "apps/render/image.h"

namespace coppice::render {

class OffscreenTarget {
 public:
  // Throws Error(kOutOfMemory) or Error(kUnavailable) when the driver cannot have it.
  OffscreenTarget(const GlFunctions& gl, int width, int height, bool has_depth = false);

  GLuint framebuffer() const { return framebuffer_.id(); }
  int width() const { return width_; }
  int height() const { return height_; }

  // Waits for the frame.
  Image wait_and_read() const;
  // Returns f32[height][width], 0 (near) to 1, top row first. There must be depth.
  std::vector<float> wait_and_read_depth() const;

 private:
  const GlFunctions& gl_;
  int width_;
  int height_;
  GlFramebuffer framebuffer_;
  GlRenderbuffer color_;
  std::optional<GlRenderbuffer> depth_;
};

}  // namespace coppice::render
