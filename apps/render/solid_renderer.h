// Draws a scene's colliders and its floor lit and solid, with depth.
#pragma once
#include <span>
#include <vector>

#include "apps/render/gl_objects.h"
#include "apps/render/render_scene.h"
#include "apps/render/view.h"
#include "core/math.h"

namespace coppice::render {

class SolidRenderer {
 public:
  // The context is current here, in all calls and in the destructor; `gl` outlives the renderer.
  explicit SolidRenderer(const GlFunctions& gl);

  // Copies the colliders that draw() shows to the graphics device. The floor is the domain's lowest side,
  // seen from above alone; a scene of two dimensions has none.
  void set_scene(std::span<const RenderCollider> colliders, const Aabb3f& domain, int dim);
  // Draws into a framebuffer (0: the window's), tested against the depth that is there, with exact depth.
  // Leaves the depth test off, the depth mask on, and nothing bound. Errors: those of the driver.
  void draw(const View& view, GLuint framebuffer);

 private:
  void draw_floor(const View& view);
  void draw_colliders(const View& view);

  const GlFunctions& gl_;
  GlProgram colliders_, floor_;
  GlVertexArray no_attributes_;
  GlBufferTexture buffer_;
  int n_colliders_ = 0, dim_ = 3;
  Aabb3f domain_;
};

}  // namespace coppice::render
