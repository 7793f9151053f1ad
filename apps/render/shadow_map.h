// This is a square map of depths from the light.
#pragma once

#include "apps/render/gl_objects.h"

namespace coppice::render {

class ShadowMap {
 public:
  // `gl` outlives the map. Throws Error(kUnavailable) or Error(kOutOfMemory) when the driver cannot have it.
  ShadowMap(const GlFunctions& gl, int side_px);

  GLuint framebuffer() const { return framebuffer_.id(); }  // of depth alone
  GLuint texture() const { return depth_.id(); }
  // Sets whether shaders read how much is nearer than a given depth (sampler2DShadow), or the depths
  // themselves. Maps begin with the former. The texture must be bound to the active unit's 2-D target.
  void set_compares(bool compares) const;

 private:
  const GlFunctions& gl_;
  GlTexture depth_;
  GlFramebuffer framebuffer_;
};

}  // namespace coppice::render
