// Loads a scene: reads it through the schema, checks what no single key can, and fills in what depends on
// other keys.
#include "apps/scene/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/error.h"

namespace coppice::scene {
namespace {

using Aabb = coppice::Aabb<double, 3>;

constexpr std::array<const char*, 6> kSideNames{"x_min", "x_max", "y_min", "y_max", "z_min", "z_max"};

std::string element_path(const char* list, std::size_t index) { return fmt::format("{}[{}]", list, index); }

// Positions are 32-bit floats, whose distance grows with that from the origin. A cell needs room for its
// particles.
void refuse_far_domain(const SceneConfig& scene) {
  constexpr double kFewestPlaces = 16;  // that a coordinate has in a cell
  const Domain& domain = scene.domain;
  const double farthest = std::max(domain.min.cwiseAbs().maxCoeff(), domain.max.cwiseAbs().maxCoeff());
  const auto coordinate = static_cast<float>(farthest);
  const double spacing_m = coordinate - std::nextafter(coordinate, 0.0f);
  if (spacing_m * kFewestPlaces <= scene.dx_m()) return;
  throw input_error(
      domain.origin.of(domain.origin.has("min") ? "min" : "max"),
      fmt::format(
          "the domain is too far from the origin: positions are 32-bit floats, which are {:.3g} m apart "
          "at {:.10g} m, and a grid cell of {:.3g} m needs {} of them; move the scene towards 0, or "
          "take larger cells",
          spacing_m, farthest, scene.dx_m(), kFewestPlaces));
}

void finish_domain(SceneConfig& scene) {
  Domain& domain = scene.domain;
  if (scene.dim == 2) domain.min.z() = domain.max.z() = 0.0;
  for (int axis = 0; axis < scene.dim; ++axis) {
    if (domain.max[axis] > domain.min[axis]) continue;
    throw input_error(
        domain.origin.of(domain.origin.has("max") ? "max" : "min"),
        fmt::format("'domain.max' must be above 'domain.min' on every axis; on {} it is {} and {}",
                    "xyz"[axis], domain.max[axis], domain.min[axis]));
  }
  refuse_far_domain(scene);
}

void finish_walls(SceneConfig& scene) {
  Walls& walls = scene.walls;
  const std::array given{walls.x_min, walls.x_max, walls.y_min, walls.y_max, walls.z_min, walls.z_max};
  for (std::size_t side = 0; side < given.size(); ++side) {
    const bool exists = static_cast<int>(side) < 2 * scene.dim;
    if (given[side] && !exists) {
      throw input_error(walls.origin.of(kSideNames[side]),
                        fmt::format("'walls.{}' does not apply here: dim = 2", kSideNames[side]));
    }
    walls.sides[side] = given[side].value_or(walls.all);
  }
}

void finish_keyframes(Camera& camera) {
  for (std::size_t i = 0; i < camera.keyframes.size(); ++i) {
    CameraKeyframe& key = camera.keyframes[i];
    const std::string path = element_path("output.camera.keyframe", i);
    if (i > 0 && !(key.time_s > camera.keyframes[i - 1].time_s)) {
      throw input_error(
          key.origin.of("time"),
          fmt::format("'{}.time' must be later than the one before, which is at {} s; it is {} s", path,
                      camera.keyframes[i - 1].time_s, key.time_s));
    }
    if (!key.origin.has("target")) key.target = camera.target;
    if (!key.origin.has("fov_deg")) key.fov_deg = camera.fov_deg;
    if ((key.position - key.target).norm() > 0.0) continue;
    throw input_error(key.origin.of("position"),
                      fmt::format("'{}.position' and its target must be different places", path));
  }
}

void finish_camera(SceneConfig& scene) {
  Camera& camera = scene.output.camera;
  if (scene.dim == 2 && scene.output.origin.has("camera")) {
    throw input_error(scene.output.origin.of("camera"), "'output.camera' does not apply here: dim = 2");
  }
  const Vec3d size = scene.domain.max - scene.domain.min;
  if (!camera.origin.has("target")) camera.target = scene.domain.min + 0.5 * size;
  if (!camera.origin.has("position")) {
    // Far enough that the sphere around the domain fills the picture's height.
    const double half_fov_rad = 0.5 * camera.fov_deg * std::numbers::pi / 180.0;
    const double distance_m = 0.5 * size.norm() / std::sin(half_fov_rad);
    camera.position = camera.target + distance_m * Vec3d(0.35, 0.35, 1.0).normalized();
  }
  if ((camera.position - camera.target).norm() == 0.0) {
    throw input_error(camera.origin.of("position"),
                      "'output.camera.position' and 'target' must be different places");
  }
  finish_keyframes(camera);
}

void finish_output(SceneConfig& scene) {
  const Output& output = scene.output;
  if (output.color_range && !(output.color_range->x() < output.color_range->y())) {
    throw input_error(output.origin.of("color_range"),
                      fmt::format("'output.color_range' must go up, not from {} to {}",
                                  output.color_range->x(), output.color_range->y()));
  }
  finish_camera(scene);
}

// Around the shape with its rotation; nothing for a mesh, whose size only its file tells.
std::optional<Aabb> bounds_of(const Emitter& emitter, int dim) {
  Vec3d reach = Vec3d::Constant(emitter.radius);
  if (emitter.shape == EmitterShape::kMesh) return std::nullopt;
  if (emitter.shape == EmitterShape::kBox) reach.setConstant(emitter.half_size.norm());
  if (emitter.shape == EmitterShape::kCylinder)
    reach.setConstant(std::hypot(emitter.radius, emitter.half_height));
  const bool is_turned = !emitter.rotate_deg.isZero(0.0);
  if (!is_turned && emitter.shape == EmitterShape::kBox) reach = emitter.half_size;
  if (!is_turned && emitter.shape == EmitterShape::kCylinder) reach.y() = emitter.half_height;
  if (!is_turned && emitter.shape == EmitterShape::kCylinder) reach.x() = reach.z() = emitter.radius;
  if (dim == 2) reach.z() = 0.0;
  return Aabb{emitter.center - reach, emitter.center + reach};
}

void refuse_outside_domain(const SceneConfig& scene, const Emitter& emitter, const std::string& path) {
  const std::optional<Aabb> bounds = bounds_of(emitter, scene.dim);
  if (!bounds) return;
  const Vec3d& low = scene.domain.min;
  const Vec3d& high = scene.domain.max;
  for (int axis = 0; axis < scene.dim; ++axis) {
    if (bounds->min[axis] < high[axis] && bounds->max[axis] > low[axis]) continue;
    throw input_error(emitter.origin.of("center"),
                      fmt::format("'{}' lies wholly outside the domain, which spans {} to {} m along {}",
                                  path, low[axis], high[axis], "xyz"[axis]));
  }
}

MaterialParameters parameters_of(const Emitter& emitter) {
  switch (emitter.material) {
    case MaterialKind::kSnow:
      return emitter.snow;
    case MaterialKind::kJelly:
      return emitter.jelly;
    case MaterialKind::kWater:
      return emitter.water;
    case MaterialKind::kSand:
      return emitter.sand;
    case MaterialKind::kClay:
      return emitter.clay;
    case MaterialKind::kMud:
      break;
  }
  return emitter.mud;
}

int material_id_of(std::vector<MaterialParameters>& materials, const MaterialParameters& wanted) {
  const auto found = std::ranges::find(materials, wanted);
  const auto id = static_cast<int>(found - materials.begin());
  if (found == materials.end()) materials.push_back(wanted);
  return id;
}

void check_inflow(const Emitter& emitter, const std::string& path) {
  if (!emitter.inflow) return;
  const Inflow& inflow = *emitter.inflow;
  if (emitter.velocity.isZero(0.0)) {
    throw input_error(emitter.origin.of("inflow"),
                      fmt::format("'{}.inflow' needs a velocity other than zero", path));
  }
  if (!inflow.until_s || *inflow.until_s > inflow.from_s) return;
  throw input_error(inflow.origin.of("until_s"),
                    fmt::format("'{}.inflow.until_s' must be later than from_s, which is {} s; it is {} s",
                                path, inflow.from_s, *inflow.until_s));
}

// Particles are looked at when the fastest has moved a cell, and must not jump over the box.
void finish_outflow(SceneConfig& scene, std::size_t index) {
  Outflow& outflow = scene.outflows[index];
  const std::string path = element_path("outflow", index);
  for (int axis = 0; axis < scene.dim; ++axis) {
    const double center = outflow.center[axis], half = outflow.half_size[axis];
    if (half < 0.999 * scene.dx_m()) {
      throw input_error(outflow.origin.of("half_size"),
                        fmt::format("'{}' must be two cells thick, {:.4g} m; along {} it is {:.4g} m", path,
                                    2 * scene.dx_m(), "xyz"[axis], 2 * half));
    }
    if (center - half < scene.domain.max[axis] && center + half > scene.domain.min[axis]) continue;
    throw input_error(outflow.origin.of("center"),
                      fmt::format("'{}' lies wholly outside the domain, which spans {} to {} m along {}",
                                  path, scene.domain.min[axis], scene.domain.max[axis], "xyz"[axis]));
  }
}

void finish_emitter(SceneConfig& scene, std::size_t index) {
  Emitter& emitter = scene.emitters[index];
  const std::string path = element_path("emitter", index);
  const bool solid_only = emitter.shape == EmitterShape::kCylinder || emitter.shape == EmitterShape::kMesh;
  if (scene.dim == 2 && solid_only) {
    const std::string_view name = enum_names(emitter.shape)[static_cast<std::size_t>(emitter.shape)];
    throw input_error(
        emitter.origin.of("shape"),
        fmt::format("'{}.shape' = \"{}\" needs dim = 3; in 2-D use \"sphere\" or \"box\"", path, name));
  }
  refuse_outside_domain(scene, emitter, path);
  if (!emitter.mesh.empty()) emitter.mesh_path = (scene.file.parent_path() / emitter.mesh).lexically_normal();
  if (emitter.shape == EmitterShape::kMesh && emitter.mesh.empty()) {
    throw input_error(emitter.origin.of("mesh"), fmt::format("'{}.mesh' must name a file", path));
  }
  if (emitter.particles_per_cell == 0) emitter.particles_per_cell = scene.dim == 2 ? 4 : 8;
  if (!emitter.seed) emitter.seed = scene.seed + static_cast<std::int64_t>(index);
  if (emitter.stiffness_spread > 0 && emitter.snow.hardening == 0) {
    throw input_error(emitter.origin.of("stiffness_spread"),
                      fmt::format("'{}.stiffness_spread' needs snow.hardening above 0", path));
  }
  check_inflow(emitter, path);
  emitter.material_id = material_id_of(scene.materials, parameters_of(emitter));
}

void finish_keyframes(Collider& collider, const std::string& path) {
  std::vector<ColliderKeyframe>& keys = collider.keyframes;
  if (keys.empty()) return;
  for (const char* key : {"velocity", "angular_velocity_rad_s"}) {
    if (!collider.origin.has(key)) continue;
    throw input_error(collider.origin.of(key),
                      fmt::format("'{0}.{1}' and '{0}.keyframe' cannot both be given", path, key));
  }
  if (keys.size() == 1) {
    throw input_error(keys[0].origin.table,
                      fmt::format("'{0}' has one keyframe; it needs two to move, and none to rest", path));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && !(keys[i].time_s > keys[i - 1].time_s)) {
      throw input_error(
          keys[i].origin.of("time"),
          fmt::format("'{}.time' must be later than the one before, which is at {} s; it is {} s",
                      element_path((path + ".keyframe").c_str(), i), keys[i - 1].time_s, keys[i].time_s));
    }
    if (!keys[i].origin.has("center")) keys[i].center = collider.center;
    if (!keys[i].origin.has("rotate_deg")) keys[i].rotate_deg = collider.rotate_deg;
  }
}

void finish_collider(SceneConfig& scene, std::size_t index) {
  Collider& collider = scene.colliders[index];
  const std::string path = element_path("collider", index);
  if (collider.shape == ColliderShape::kMesh) {
    if (scene.dim == 2)
      throw input_error(collider.origin.of("shape"),
                        fmt::format("'{}.shape' = \"mesh\" needs dim = 3", path));
    if (collider.mesh.empty())
      throw input_error(collider.origin.of("mesh"), fmt::format("'{}.mesh' must name a file", path));
    collider.mesh_path = (scene.file.parent_path() / collider.mesh).lexically_normal();
    collider.center = collider.translate;
  }
  if (collider.shape == ColliderShape::kPlane) {
    if (!(collider.normal.norm() > 0))
      throw input_error(collider.origin.of("normal"), fmt::format("'{}.normal' must not be zero", path));
    collider.normal.normalize();
  }
  finish_keyframes(collider, path);
}

void finish(SceneConfig& scene) {
  if (scene.name.empty()) scene.name = scene.file.stem().string();
  finish_domain(scene);
  if (scene.time.frame_dt_s == 0.0) scene.time.frame_dt_s = 1.0 / scene.time.fps;
  scene.time.fps = 1.0 / scene.time.frame_dt_s;
  finish_walls(scene);
  if (scene.emitters.empty()) {
    throw input_error({scene.file.string(), 0, 0}, "the scene is empty: it needs at least one [[emitter]]");
  }
  for (std::size_t i = 0; i < scene.emitters.size(); ++i) finish_emitter(scene, i);
  for (std::size_t i = 0; i < scene.outflows.size(); ++i) finish_outflow(scene, i);
  for (std::size_t i = 0; i < scene.colliders.size(); ++i) finish_collider(scene, i);
  finish_output(scene);
}

SceneConfig scene_of(const Document& document, const std::filesystem::path& file) {
  SceneConfig scene = scene_schema().read(document);
  scene.file = file;
  scene.text = document.text();
  finish(scene);
  return scene;
}

}  // namespace

double SceneConfig::dx_m() const { return (domain.max - domain.min).maxCoeff() / grid.resolution; }

Vec3d SceneConfig::size_cells() const {
  Vec3d size = Vec3d::Ones();
  for (int axis = 0; axis < dim; ++axis) {
    const double exact = (domain.max[axis] - domain.min[axis]) / dx_m(), whole = std::round(exact);
    size[axis] = std::abs(exact - whole) <= 1.0e-6 ? std::max(whole, 1.0) : exact;
  }
  return size;
}

bool SceneConfig::has_inflow() const {
  return std::ranges::any_of(emitters, [](const Emitter& e) { return e.inflow.has_value(); });
}

bool SceneConfig::has_flow() const { return has_inflow() || !outflows.empty(); }
Vec3i SceneConfig::cells() const { return size_cells().array().ceil().cast<int>(); }

SceneConfig load_scene(const std::filesystem::path& path, std::span<const SceneOverride> overrides) {
  return scene_of(Document::load(path, overrides), path);
}

SceneConfig parse_scene(std::string_view text, const std::string& file_name,
                        std::span<const SceneOverride> overrides) {
  return scene_of(Document::parse(text, file_name, overrides), file_name);
}

}  // namespace coppice::scene
