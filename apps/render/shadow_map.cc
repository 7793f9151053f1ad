// The depth texture and its framebuffer.
#include "apps/render/shadow_map.h"

#include "apps/render/id_target.h"

namespace coppice::render {

ShadowMap::ShadowMap(const GlFunctions& gl, int side_px) : gl_(gl), depth_(gl), framebuffer_(gl) {
  allocate_texture(gl, depth_, GL_DEPTH_COMPONENT32F, side_px, side_px, GL_LINEAR);
  gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_FUNC, GL_LEQUAL);
  set_compares(true);
  gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_.id());
  gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, depth_.id(), 0);
  gl.DrawBuffer(GL_NONE);
  gl.ReadBuffer(GL_NONE);
  require_complete_framebuffer(gl, "a shadow map");
  gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
}

void ShadowMap::set_compares(bool compares) const {
  gl_.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_MODE, compares ? GL_COMPARE_REF_TO_TEXTURE : GL_NONE);
}

}  // namespace coppice::render
