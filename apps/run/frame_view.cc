// This makes what a frame shows (see frame_view.h).
#include "apps/run/frame_view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/mpm/placed_mesh.h"
#include "apps/render/camera_path.h"
#include "apps/run/particle_fields.h"
#include "apps/scene/collider_motion.h"

namespace coppice {
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

namespace {

// Materials keep their own colour; emitters of one scene are told apart by the palette's order.
std::vector<uint8_t> colors_of(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& particles) {
  const bool by_emitter = scene.output.color == scene::ColorBy::kEmitter;
  const auto color_of_kind = [&](const scene::MaterialParameters& m) {
    return static_cast<size_t>(scene::kind_of_material(m));
  };
  std::vector<uint8_t> colors;
  colors.reserve(particles.emitter.size());
  for (size_t i = 0; i < particles.emitter.size(); ++i) {
    const size_t color =
        by_emitter ? particles.emitter[i] : color_of_kind(scene.materials[particles.material[i]]);
    colors.push_back(static_cast<uint8_t>(color % render::default_palette().size()));
  }
  return colors;
}

bool is_scalar(scene::ColorBy color) {
  return color != scene::ColorBy::kMaterial && color != scene::ColorBy::kEmitter;
}

std::vector<float> scalars_of(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& particles) {
  if (scene.output.color == scene::ColorBy::kPressure) return pressures(particles, scene.dim);
  if (scene.output.color == scene::ColorBy::kVonMises) return von_mises_stresses(particles, scene.dim);
  if (scene.output.color == scene::ColorBy::kVolumeRatio) return particles.volume_ratio;
  std::vector<float> speeds;
  speeds.reserve(particles.velocity.size());
  for (const Vec3f& velocity : particles.velocity) speeds.push_back(velocity.norm());
  return speeds;
}

}  // namespace

render::Look look_of(scene::MaterialKind kind, scene::ColorBy color) {
  switch (kind) {
    case scene::MaterialKind::kSnow:
      return render::Look::kSnow;
    case scene::MaterialKind::kWater:
      return color == scene::ColorBy::kMaterial ? render::Look::kWater : render::Look::kJelly;
    case scene::MaterialKind::kSand:
      return render::Look::kSand;
    case scene::MaterialKind::kClay:
    case scene::MaterialKind::kMud:
    case scene::MaterialKind::kJelly:
      break;
  }
  return render::Look::kJelly;
}

namespace {

// A plane is drawn in the domain, in whose middle it says where it is.
void place_plane(const scene::SceneConfig& scene, const scene::Collider& c, render::RenderCollider& r) {
  const Vec3f point = r.center;
  r.normal = r.world_from_local * c.normal.cast<float>();
  r.world_from_local = Mat3f::Identity();
  r.center = (0.5 * (scene.domain.min + scene.domain.max)).cast<float>();
  r.half_size = (0.5 * (scene.domain.max - scene.domain.min)).cast<float>();
  r.offset_m = r.normal.dot(point - r.center);
}

void add_mesh(const scene::SceneConfig& scene, const scene::Collider& c, render::RenderCollider& r) {
  const std::shared_ptr<const mpm::MeshColliderShape> shape = mpm::load_mesh_collider(scene, c);
  const DistanceGrid& d = shape->distance;
  r.distances = {d.nodes, d.low, d.spacing_m, {shape, &d.values}};
  const Vec3f high = d.low + d.spacing_m * (d.nodes - Vec3i::Ones()).cast<float>();
  r.half_size = d.low.cwiseAbs().cwiseMax(high.cwiseAbs());
}

}  // namespace

std::vector<render::RenderCollider> colliders_at(const scene::SceneConfig& scene, double time_s) {
  std::vector<render::RenderCollider> all;
  for (const scene::Collider& c : scene.colliders) {
    const scene::RigidPose pose = scene::pose_at(c, time_s);
    render::RenderCollider r;
    r.shape = c.shape;
    r.center = pose.center.cast<float>();
    r.radius_m = static_cast<float>(c.radius);
    r.half_size = c.half_size.cast<float>();
    r.world_from_local = pose.world_from_local;
    if (c.shape == scene::ColliderShape::kPlane) place_plane(scene, c, r);
    if (c.shape == scene::ColliderShape::kMesh) add_mesh(scene, c, r);
    if (c.shape == scene::ColliderShape::kCapsule)
      r.half_size = Vec3d(c.radius, c.radius + c.half_height, c.radius).cast<float>();
    all.push_back(std::move(r));
  }
  return all;
}

namespace {

double spacing_m(const scene::SceneConfig& scene, int per_cell) {
  return scene.dx_m() / std::pow(per_cell, 1.0 / scene.dim);
}

}  // namespace

std::array<float, 2> body_spacing_m(const scene::SceneConfig& scene) {
  std::array<float, 2> widest{};
  for (const scene::Emitter& e : scene.emitters) {
    const render::Look look = look_of(e.material, scene.output.color);
    if (look != render::Look::kWater && look != render::Look::kJelly) continue;
    float& of = widest[look == render::Look::kWater ? 0 : 1];
    of = std::max(of, static_cast<float>(spacing_m(scene, e.particles_per_cell)));
  }
  return widest;
}

float particle_radius_m(const scene::SceneConfig& scene) {
  const double spacing = spacing_m(scene, scene.emitters.empty() ? 8 : scene.emitters[0].particles_per_cell);
  return static_cast<float>((scene.dim == 3 ? render::kRadiusPerSpacing : 0.75) * spacing);
}

namespace {

// Returns the radius of the sphere around an emitter at the start, m; none where that is not known
// without its mesh.
std::optional<double> radius_of(const scene::Emitter& e) {
  switch (e.shape) {
    case scene::EmitterShape::kSphere:
      return e.radius;
    case scene::EmitterShape::kBox:
      return e.half_size.norm();
    case scene::EmitterShape::kCylinder:
      return std::hypot(e.radius, e.half_height);
    case scene::EmitterShape::kMesh:
      break;
  }
  return std::nullopt;
}

}  // namespace

Aabb3f scene_bounds(const scene::SceneConfig& scene) {
  const Aabb3f domain{scene.domain.min.cast<float>(), scene.domain.max.cast<float>()};
  const bool falls = scene.gravity.y() < 0 && scene.gravity.x() == 0 && scene.gravity.z() == 0;
  Aabb3f bodies;
  const auto add_sphere = [&](const Vec3d& center, double radius) {
    bodies.extend(Vec3f((center - Vec3d::Constant(radius)).cast<float>()));
    bodies.extend(Vec3f((center + Vec3d::Constant(radius)).cast<float>()));
  };
  for (const scene::Emitter& e : scene.emitters) {
    const std::optional<double> radius = radius_of(e);
    if (!radius || !falls || e.velocity.norm() > 0) return domain;
    add_sphere(e.center, *radius);
  }
  for (const scene::Collider& c : scene.colliders) {
    if (c.velocity.norm() > 0 || !c.keyframes.empty()) return domain;
    if (c.shape == scene::ColliderShape::kPlane || c.shape == scene::ColliderShape::kMesh) return domain;
    add_sphere(c.center,
               c.shape == scene::ColliderShape::kBox ? c.half_size.norm() : c.radius + c.half_height);
  }
  // Falling bodies spread about as wide as they were high, and splash a little higher.
  const float height = bodies.max.y() - domain.min.y();
  bodies.min -= Vec3f(height, 0, height);
  bodies.max += Vec3f(height, 0.1f * height, height);
  bodies.min.y() = domain.min.y();
  bodies.min = bodies.min.cwiseMax(domain.min);
  bodies.max = bodies.max.cwiseMin(domain.max);
  return bodies.is_empty() ? domain : bodies;
}

namespace {

// Keyframes leave open what the camera without them would have.
render::Camera camera_at(const scene::Camera& camera, render::Camera otherwise, double time_s) {
  std::vector<render::CameraKey> keys;
  for (const scene::CameraKeyframe& k : camera.keyframes) {
    render::Camera at = otherwise;
    at.position = k.position.cast<float>();
    if (k.origin.has("target")) at.look_at = k.target.cast<float>();
    if (k.origin.has("fov_deg")) at.fov_deg = static_cast<float>(k.fov_deg);
    keys.push_back({k.time_s, at});
  }
  return render::camera_at(keys, time_s);
}

}  // namespace

render::Camera camera_of(const scene::SceneConfig& scene, float aspect, double time_s) {
  const Aabb3f domain{scene.domain.min.cast<float>(), scene.domain.max.cast<float>()};
  if (scene.dim == 2) return render::frame_domain_2d(domain, aspect);
  const scene::Camera& c = scene.output.camera;
  render::Camera camera = render::frame_domain_3d(scene_bounds(scene), aspect, static_cast<float>(c.fov_deg));
  if (c.origin.has("position")) camera.position = c.position.cast<float>();
  if (c.origin.has("target")) camera.look_at = c.target.cast<float>();
  if (!c.keyframes.empty()) return camera_at(c, camera, time_s);
  return camera;
}

ShownParticles show_particles(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& particles) {
  ShownParticles shown{particles.position, colors_of(scene, particles), {}, {}};
  if (is_scalar(scene.output.color)) shown.scalar = scalars_of(scene, particles);
  std::vector<render::Look> look_of_material;
  for (const scene::MaterialParameters& m : scene.materials)
    look_of_material.push_back(look_of(scene::kind_of_material(m), scene.output.color));
  shown.looks.reserve(particles.material.size());
  for (const uint32_t material : particles.material) shown.looks.push_back(look_of_material[material]);
  return shown;
}

render::RenderScene make_frame_view(const scene::SceneConfig& scene, const ShownParticles& particles,
                                    double time_s) {
  render::RenderScene r;
  r.dim = scene.dim;
  r.domain = {scene.domain.min.cast<float>(), scene.domain.max.cast<float>()};
  r.radius_m = particle_radius_m(scene);
  r.body_spacing_m = body_spacing_m(scene);
  r.color_mode = is_scalar(scene.output.color) ? render::ColorMode::kScalar : render::ColorMode::kMaterial;
  r.color_map = color_map_of(scene.output.colormap);
  if (scene.output.color_range)
    r.range = render::ScalarRange{static_cast<float>(scene.output.color_range->x()),
                                  static_cast<float>(scene.output.color_range->y())};
  r.colliders = colliders_at(scene, time_s);
  r.camera = camera_of(
      scene, static_cast<float>(scene.output.width) / static_cast<float>(scene.output.height), time_s);
  r.positions = particles.positions;
  r.materials = particles.colors;
  r.looks = particles.looks;
  r.scalar = particles.scalar;
  return r;
}

}  // namespace coppice
