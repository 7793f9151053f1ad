// A colour renderbuffer in a framebuffer, read back top row first.
#include "apps/render/offscreen_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace coppice::render {

OffscreenTarget::OffscreenTarget(const GlFunctions& gl, int width, int height)
    : gl_(gl), width_(width), height_(height), framebuffer_(gl), color_(gl) {
  gl.BindRenderbuffer(GL_RENDERBUFFER, color_.id());
  gl.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  check_gl(gl, "allocating the frame");
  gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  gl.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color_.id());
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

}  // namespace coppice::render
