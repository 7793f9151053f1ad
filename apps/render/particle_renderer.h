// Draws a RenderScene into a framebuffer with whatever OpenGL context is current; owns no window and no
// context.
//
// A frame: (1) host: colours, the surfaces of water and jelly, grains, smooth normals, ambient visibility;
// (2) depth of everything from the key light, water apart; (3) the light that reaches the floor; (4) which
// particle, jelly or collider each sample sees, and its depth, and the depth of water; (5) one pass over
// the pixels that intersects, lights and averages. Spheres are exact: a triangle per particle, and a ray
// per sample.
#pragma once

#include <memory>

#include "apps/render/gl_functions.h"
#include "apps/render/goes_on.h"
#include "apps/render/render_scene.h"

namespace coppice::render {

struct RenderOptions {
  int samples_per_side = 2;   // n x n samples per pixel, 1 to 4
  int shadow_size_px = 1024;  // side of the shadow map
};

class ParticleRenderer {
 public:
  // `gl` must outlive the renderer; its context is current here, in draw() and in the destructor.
  // Throws Error(kUnavailable) when the driver refuses the shaders, kInvalidArgument for options out of
  // range.
  explicit ParticleRenderer(const GlFunctions& gl, const RenderOptions& options = {});
  ~ParticleRenderer();
  ParticleRenderer(const ParticleRenderer&) = delete;
  ParticleRenderer& operator=(const ParticleRenderer&) = delete;

  // Fills the width x height pixels at the framebuffer's lower left corner (0 is the window). Does not wait,
  // unless somebody may end it: then passes are drawn in parts, each of which is waited for before `goes_on`
  // is asked. The pixels are the same. Returns false as soon as `goes_on` does; what the framebuffer has is
  // not specified then, and another frame can be drawn. Leaves depth test and face culling off, and no
  // program, vertex array or texture of unit 0 bound. Errors: kInvalidArgument (the scene), kOutOfMemory,
  // kUnavailable (more particles or pixels than the driver takes).
  bool draw(const RenderScene& scene, GLuint framebuffer, int width, int height, const GoesOn& goes_on = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice::render
