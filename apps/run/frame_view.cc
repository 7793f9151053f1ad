// What a frame shows (see frame_view.h).
#include "apps/run/frame_view.h"

#include <algorithm>
#include <cmath>

#include "apps/geometry/mesh.h"

namespace coppice {
namespace {

render::ColorMap color_map_of(scene::Colormap map) {
  switch (map) {
    case scene::Colormap::kViridis:
      return render::ColorMap::kViridis;
    case scene::Colormap::kInferno:
      return render::ColorMap::kInferno;
    case scene::Colormap::kTurbo:
      return render::ColorMap::kTurbo;
    case scene::Colormap::kGray:
      return render::ColorMap::kGray;
  }
  return render::ColorMap::kViridis;
}

// Materials keep their own colour; emitters of one scene are told apart by the palette's order.
void choose_colors(const scene::SceneConfig& scene, FrameView& view) {
  const auto own = render::default_palette();
  const bool by_emitter = scene.output.color == scene::ColorBy::kEmitter;
  view.colors = by_emitter ? view.particles.emitter : view.particles.material;
  if (by_emitter) {
    view.palette.assign(own.begin(), own.end());
    return;
  }
  for (const scene::MaterialParameters& m : scene.materials) {
    view.palette.push_back(own[static_cast<size_t>(scene::kind_of_material(m)) % own.size()]);
  }
}

void choose_scalar(const scene::SceneConfig& scene, FrameView& view) {
  const size_t n = view.particles.position.size();
  view.scalar.resize(n);
  for (size_t i = 0; i < n; ++i) {
    view.scalar[i] = scene.output.color == scene::ColorBy::kSpeed ? view.particles.velocity[i].norm()
                                                                  : view.particles.volume_ratio[i];
  }
}

void place_colliders(const scene::SceneConfig& scene, double time_s, render::RenderScene& out) {
  for (const scene::Collider& c : scene.colliders) {
    render::RenderCollider r;
    r.shape = c.shape == scene::ColliderShape::kSphere ? render::RenderColliderShape::kSphere
                                                       : render::RenderColliderShape::kBox;
    r.center = (c.center + time_s * c.velocity).cast<float>();
    r.radius_m = static_cast<float>(c.radius);
    r.half_size = c.half_size.cast<float>();
    const Vec3d turn = time_s * c.angular_velocity_rad_s;
    Mat3f spin = Mat3f::Identity();
    if (turn.norm() > 0)
      spin = Eigen::AngleAxisd(turn.norm(), turn.normalized()).toRotationMatrix().cast<float>();
    r.world_from_local = spin * rotation_from_euler_degrees(c.rotate_deg.cast<float>());
    out.colliders.push_back(r);
  }
}

}  // namespace

FrameView make_frame_view(const scene::SceneConfig& scene, mpm::ParticleSnapshot particles, double time_s) {
  FrameView view;
  view.particles = std::move(particles);
  choose_colors(scene, view);
  render::RenderScene& r = view.render;
  r.dim = scene.dim;
  r.domain = {scene.domain.min.cast<float>(), scene.domain.max.cast<float>()};
  const int per_cell = scene.emitters.empty() ? 8 : scene.emitters[0].particles_per_cell;
  const double spacing = scene.dx_m() / std::pow(per_cell, 1.0 / scene.dim);
  r.radius_m = static_cast<float>((scene.dim == 3 ? 0.6 : 0.75) * spacing);
  const bool scalar =
      scene.output.color == scene::ColorBy::kSpeed || scene.output.color == scene::ColorBy::kVolumeRatio;
  r.color_mode = scalar ? render::ColorMode::kScalar : render::ColorMode::kMaterial;
  if (scalar) choose_scalar(scene, view);
  r.color_map = color_map_of(scene.output.colormap);
  if (scene.output.color_range)
    r.range = render::ScalarRange{static_cast<float>(scene.output.color_range->x()),
                                  static_cast<float>(scene.output.color_range->y())};
  place_colliders(scene, time_s, r);
  const float aspect = static_cast<float>(scene.output.width) / static_cast<float>(scene.output.height);
  if (scene.dim == 2) {
    r.camera = render::frame_domain_2d(r.domain, aspect);
  } else {
    r.camera = render::frame_domain_3d(r.domain, aspect);
    const scene::Camera& c = scene.output.camera;
    if (c.origin.has("position")) r.camera.position = c.position.cast<float>();
    if (c.origin.has("target")) r.camera.look_at = c.target.cast<float>();
    if (c.origin.has("fov_deg")) r.camera.fov_deg = static_cast<float>(c.fov_deg);
  }
  r.positions = view.particles.position;
  r.materials = view.colors;
  r.scalar = view.scalar;
  r.palette = view.palette;
  return view;
}

}  // namespace coppice
