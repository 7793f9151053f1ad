// Renderbuffers of colour and depth in a framebuffer, read back top row first.
#include "apps/render/offscreen_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "core/error.h"

namespace coppice::render {

OffscreenTarget::OffscreenTarget(const GlFunctions& gl, int width, int height, bool has_depth)
    : gl_(gl), width_(width), height_(height), framebuffer_(gl), color_(gl) {
  gl.BindRenderbuffer(GL_RENDERBUFFER, color_.id());
  gl.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  if (has_depth) {
    depth_.emplace(gl);
    gl.BindRenderbuffer(GL_RENDERBUFFER, depth_->id());
    gl.RenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH_COMPONENT32F, width, height);
  }
  check_gl(gl, "allocating the frame");
  gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  gl.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color_.id());
  if (has_depth) {
    gl.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER, depth_->id());
  }
  const GLenum status = gl.CheckFramebufferStatus(GL_FRAMEBUFFER);
  gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
  if (status != GL_FRAMEBUFFER_COMPLETE) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the OpenGL driver cannot draw frames of {} x {} pixels (status 0x{:04x})", width,
                            height, status));
  }
}

Image OffscreenTarget::wait_and_read() const {
  Image image(width_, height_);
  gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  gl_.ReadBuffer(GL_COLOR_ATTACHMENT0);
  gl_.PixelStorei(GL_PACK_ALIGNMENT, 1);
  gl_.ReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, image.bytes().data());
  gl_.BindFramebuffer(GL_FRAMEBUFFER, 0);
  check_gl(gl_, "reading a frame back");
  image.flip_rows();  // OpenGL's first row is the bottom one
  return image;
}

std::vector<float> OffscreenTarget::wait_and_read_depth() const {
  COPPICE_CHECK(depth_.has_value(), "the target was made without depth");
  const size_t width = static_cast<size_t>(width_);
  const size_t height = static_cast<size_t>(height_);
  std::vector<float> depth(width * height);
  gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  // Rows are read one at a time, because OpenGL's first row is the bottom one.
  for (size_t y = 0; y < height; ++y) {
    gl_.ReadPixels(0, height_ - 1 - static_cast<GLint>(y), width_, 1, GL_DEPTH_COMPONENT, GL_FLOAT,
                   &depth[y * width]);
  }
  gl_.BindFramebuffer(GL_FRAMEBUFFER, 0);
  check_gl(gl_, "reading depth back");
  return depth;
}

}  // namespace coppice::render
