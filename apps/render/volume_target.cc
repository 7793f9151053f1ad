// Framebuffers with textures in them.
#include "apps/render/volume_target.h"

#include "apps/render/id_target.h"

namespace coppice::render {

void VolumeTarget::begin(int width, int height) {
  if (width != width_ || height != height_) {
    width_ = height_ = 0;
    color_.emplace(gl_), depth_.emplace(gl_), framebuffer_.emplace(gl_);
    gl_.ActiveTexture(GL_TEXTURE0);
    allocate_texture(gl_, *color_, GL_RGBA8, width, height, GL_LINEAR);
    allocate_texture(gl_, *depth_, GL_DEPTH_COMPONENT32F, width, height, GL_NEAREST);
    bind();
    gl_.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, color_->id(), 0);
    gl_.FramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, depth_->id(), 0);
    require_complete_framebuffer(gl_, "a volume");
    width_ = width, height_ = height;
  }
  bind();
  gl_.Disable(GL_SCISSOR_TEST);
  gl_.DepthMask(GL_TRUE);
  const GLfloat nothing[4] = {0, 0, 0, 0};
  const GLfloat farthest = 1;
  gl_.ClearBufferfv(GL_COLOR, 0, nothing);
  gl_.ClearBufferfv(GL_DEPTH, 0, &farthest);
}

// The format that a copy must have, for depth is copied between equal formats only; 0 where there is no
// depth.
GLenum DepthCopy::format_of(GLuint framebuffer) const {
  gl_.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
  const auto ask = [&](GLenum attachment, GLenum what) {
    GLint answer = 0;
    gl_.GetFramebufferAttachmentParameteriv(GL_READ_FRAMEBUFFER, attachment, what, &answer);
    return answer;
  };
  const GLenum depth = framebuffer == 0 ? GL_DEPTH : GL_DEPTH_ATTACHMENT;
  const GLenum stencil = framebuffer == 0 ? GL_STENCIL : GL_STENCIL_ATTACHMENT;
  if (ask(depth, GL_FRAMEBUFFER_ATTACHMENT_OBJECT_TYPE) == GL_NONE) return 0;
  const GLint bits = ask(depth, GL_FRAMEBUFFER_ATTACHMENT_DEPTH_SIZE);
  const bool has_stencil = ask(stencil, GL_FRAMEBUFFER_ATTACHMENT_OBJECT_TYPE) != GL_NONE &&
                           ask(stencil, GL_FRAMEBUFFER_ATTACHMENT_STENCIL_SIZE) != 0;
  if (bits == 0) return 0;
  if (bits == 16) return GL_DEPTH_COMPONENT16;
  const bool is_float = ask(depth, GL_FRAMEBUFFER_ATTACHMENT_COMPONENT_TYPE) == GL_FLOAT;
  if (is_float) return has_stencil ? GL_DEPTH32F_STENCIL8 : GL_DEPTH_COMPONENT32F;
  if (bits == 32) return GL_DEPTH_COMPONENT32;
  return has_stencil ? GL_DEPTH24_STENCIL8 : GL_DEPTH_COMPONENT24;
}

bool DepthCopy::copy(GLuint framebuffer, int width, int height, const Vec2i& low, const Vec2i& high) {
  const GLenum format = format_of(framebuffer);
  if (format == 0) return false;
  if (width != width_ || height != height_ || format != format_) {
    width_ = height_ = 0;
    texture_.emplace(gl_), framebuffer_.emplace(gl_);
    const bool has_stencil = format == GL_DEPTH24_STENCIL8 || format == GL_DEPTH32F_STENCIL8;
    gl_.ActiveTexture(GL_TEXTURE0);
    gl_.BindTexture(GL_TEXTURE_2D, texture_->id());
    gl_.TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format), width, height, 0,
                   has_stencil ? GL_DEPTH_STENCIL : GL_DEPTH_COMPONENT,
                   format == GL_DEPTH24_STENCIL8    ? GL_UNSIGNED_INT_24_8
                   : format == GL_DEPTH32F_STENCIL8 ? GL_FLOAT_32_UNSIGNED_INT_24_8_REV
                                                    : GL_FLOAT,
                   nullptr);
    for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
      gl_.TexParameteri(GL_TEXTURE_2D, filter, GL_NEAREST);
    gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_->id());
    gl_.FramebufferTexture2D(GL_FRAMEBUFFER, has_stencil ? GL_DEPTH_STENCIL_ATTACHMENT : GL_DEPTH_ATTACHMENT,
                             GL_TEXTURE_2D, texture_->id(), 0);
    gl_.DrawBuffer(GL_NONE);
    gl_.ReadBuffer(GL_NONE);
    require_complete_framebuffer(gl_, "behind other things");
    width_ = width, height_ = height, format_ = format;
  }
  gl_.Disable(GL_SCISSOR_TEST);
  gl_.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
  gl_.BindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer_->id());
  gl_.BlitFramebuffer(low.x(), low.y(), high.x(), high.y(), low.x(), low.y(), high.x(), high.y(),
                      GL_DEPTH_BUFFER_BIT, GL_NEAREST);
  check_gl(gl_, "copying the depth of a frame");
  return true;
}

}  // namespace coppice::render
