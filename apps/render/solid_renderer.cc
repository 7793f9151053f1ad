// Colliders by rays through the boxes around them, and a rectangle.
#include "apps/render/solid_renderer.h"

#include "apps/render/scene_geometry.h"

namespace coppice::render {
namespace {

const Rgb kColor(0.62f, 0.60f, 0.57f);

}  // namespace

SolidRenderer::SolidRenderer(const GlFunctions& gl)
    : gl_(gl),
      colliders_(gl, "collider.vert", "solid.frag"),
      floor_(gl, "floor.vert", "floor.frag"),
      no_attributes_(gl),
      buffer_(gl, GL_RGBA32F) {}

void SolidRenderer::set_scene(std::span<const RenderCollider> colliders, const Aabb3f& domain, int dim) {
  RenderScene scene;
  scene.dim = dim;
  scene.colliders.assign(colliders.begin(), colliders.end());
  const std::vector<float> packed = pack_colliders(scene);
  buffer_.upload(std::as_bytes(std::span(packed)));
  n_colliders_ = static_cast<int>(colliders.size());
  domain_ = domain, dim_ = dim;
}

void SolidRenderer::draw_floor(const View& view) {
  const Vec3f eye = view.view_from_world.inverse().block<3, 1>(0, 3);
  if (dim_ != 3 || domain_.is_empty() || eye.y() <= domain_.min.y()) return;
  floor_.use();
  set_view(floor_, view);
  // The domain's edges stay before it.
  floor_.set("u_low", Vec3f(domain_.min - Vec3f::UnitY() * (1e-3f * domain_.size().maxCoeff())));
  floor_.set("u_high", domain_.max);
  floor_.set("u_grid_m", grid_spacing(domain_));
  gl_.DrawArrays(GL_TRIANGLES, 0, 6);
}

void SolidRenderer::draw_colliders(const View& view) {
  if (n_colliders_ == 0) return;
  colliders_.use();
  set_view(colliders_, view);
  buffer_.bind(0);
  colliders_.set("u_colliders", 0);
  colliders_.set("u_world_from_view", Mat4f(view.view_from_world.inverse()));
  colliders_.set("u_to_light", to_key_light());
  colliders_.set("u_color", Vec3f(kColor.array().pow(2.2f)));
  colliders_.set("u_is_flat", dim_ == 2 ? 1 : 0);
  const auto [low, high] = shown_rectangle(domain_, dim_);
  colliders_.set("u_shown_low", low);
  colliders_.set("u_shown_high", high);
  // Back faces are seen from inside of the boxes, too.
  gl_.Enable(GL_CULL_FACE);
  gl_.CullFace(GL_FRONT);
  gl_.DrawArrays(GL_TRIANGLES, 0, 36 * n_colliders_);
  gl_.Disable(GL_CULL_FACE);
  gl_.BindTexture(GL_TEXTURE_BUFFER, 0);
}

void SolidRenderer::draw(const View& view, GLuint framebuffer) {
  gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl_.Viewport(0, 0, view.width_px(), view.height_px());
  gl_.Enable(GL_DEPTH_TEST);
  gl_.DepthFunc(GL_LESS);
  gl_.DepthMask(GL_TRUE);
  gl_.BindVertexArray(no_attributes_.id());
  draw_floor(view);
  draw_colliders(view);
  gl_.BindVertexArray(0);
  gl_.UseProgram(0);
  gl_.Disable(GL_DEPTH_TEST);
  check_gl(gl_, "drawing colliders");
}

}  // namespace coppice::render
