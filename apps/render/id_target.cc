// Textures of ids and depth in a framebuffer.
#include "apps/render/id_target.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice::render {

void require_complete_framebuffer(const GlFunctions& gl, const char* what) {
  const GLenum status = gl.CheckFramebufferStatus(GL_FRAMEBUFFER);
  check_gl(gl, "allocating render targets");
  if (status != GL_FRAMEBUFFER_COMPLETE) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the OpenGL driver cannot draw {}: status 0x{:04x}", what, status));
  }
}

IdTarget::IdTarget(const GlFunctions& gl, int width, int height)
    : gl_(gl), width_(width), height_(height), ids_(gl), depth_(gl), framebuffer_(gl) {
  GLint max_px = 0;
  gl.GetIntegerv(GL_MAX_TEXTURE_SIZE, &max_px);
  if (width > max_px || height > max_px) {
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("this OpenGL driver draws at most {0} x {0} samples, not {1} x {2}; choose a smaller "
                    "frame",
                    max_px, width, height));
  }
  allocate_texture(gl, ids_, GL_R32UI, width, height, GL_NEAREST);
  allocate_texture(gl, depth_, GL_DEPTH_COMPONENT32F, width, height, GL_NEAREST);
  gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, ids_.id(), 0);
  gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, depth_.id(), 0);
  require_complete_framebuffer(gl, "particle ids");
}

void IdTarget::bind() const {
  gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  gl_.Viewport(0, 0, width_, height_);
  gl_.Enable(GL_DEPTH_TEST);
  gl_.DepthFunc(GL_LESS);
  gl_.DepthMask(GL_TRUE);
}

void IdTarget::clear() const {
  const GLfloat farthest = 1.0f;
  const GLuint nothing[4] = {0, 0, 0, 0};
  gl_.ClearBufferfv(GL_DEPTH, 0, &farthest);
  gl_.ClearBufferuiv(GL_COLOR, 0, nothing);
}

}  // namespace coppice::render
