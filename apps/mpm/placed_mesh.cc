// Loading, and the meshes that are in use (see placed_mesh.h).
#include "apps/mpm/placed_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "core/error.h"

namespace coppice::mpm {
namespace {

constexpr double kNodesPerCell = 2;   // of the solver's grid, per axis
constexpr double kMarginCells = 2.5;  // what looks from farther away sees nothing of a collider

MeshColliderShape make_shape(const scene::SceneConfig& scene, const scene::Collider& c) {
  const Mat3d local_from_world =
      rotation_from_euler_degrees(c.rotate_deg.cast<float>()).cast<double>().transpose();
  TriangleMesh mesh = load_placed_mesh(c);
  float radius2 = 0;
  for (Vec3f& v : mesh.vertices) {
    v = (local_from_world * (v.cast<double>() + mesh.origin - c.center)).cast<float>();
    radius2 = std::max(radius2, v.squaredNorm());
  }
  mesh.origin.setZero();
  const MeshShape shape(mesh, c.mesh_path.string(), c.strict ? OpenMesh::kRefuse : OpenMesh::kWarn);
  const double dx = scene.dx_m();
  const DistanceGridOptions options{.spacing_m = static_cast<float>(dx / kNodesPerCell),
                                    .margin_m = static_cast<float>(kMarginCells * dx)};
  MeshColliderShape made{signed_distance(mesh, shape, options), std::sqrt(radius2)};
  if (std::ranges::none_of(made.distance.values, [](float d) { return d < 0; })) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the collider's mesh {} encloses nothing as wide as {:.3g} m; take a finer grid, or "
                    "make it thicker",
                    c.mesh_path.string(), made.distance.spacing_m));
  }
  return made;
}

// Says what the shape depends on.
std::string key_of(const scene::SceneConfig& scene, const scene::Collider& c) {
  std::error_code ignored;
  const auto written = std::filesystem::last_write_time(c.mesh_path, ignored).time_since_epoch().count();
  const Vec3d &t = c.translate, &r = c.rotate_deg;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", c.mesh_path.string(), written, c.fit.value_or(0),
                     c.scale, c.strict, scene.dx_m(), t.x(), t.y(), t.z(), r.x(), r.y(), r.z());
}

}  // namespace

std::shared_ptr<const MeshColliderShape> load_mesh_collider(const scene::SceneConfig& scene,
                                                            const scene::Collider& collider) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const MeshColliderShape>> in_use;
  const std::lock_guard lock(mutex);
  std::erase_if(in_use, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const MeshColliderShape>& kept = in_use[key_of(scene, collider)];
  if (std::shared_ptr<const MeshColliderShape> shape = kept.lock()) return shape;
  try {
    const auto shape = std::make_shared<const MeshColliderShape>(make_shape(scene, collider));
    kept = shape;
    return shape;
  } catch (const Error& error) {
    // The mesh's own place goes into the message; the scene's line is where the user starts looking.
    throw Error(error.code(), error.what(), collider.origin.of("mesh"));
  }
}

}  // namespace coppice::mpm
