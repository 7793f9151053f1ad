// Meshes of a scene as they are placed, and the distances of those that are colliders.
#pragma once

#include <memory>

#include "apps/geometry/signed_distance.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// Loads the mesh of an emitter or a collider, and turns, sizes and moves it as that says. Errors: those of
// load_mesh() and fit_mesh_into().
template <class Placed>
TriangleMesh load_placed_mesh(const Placed& from) {
  TriangleMesh mesh = load_mesh(from.mesh_path.string());
  transform_mesh(mesh,
                 {1.0f, rotation_from_euler_degrees(from.rotate_deg.template cast<float>()), Vec3f::Zero()});
  const Vec3f to = from.translate.template cast<float>();
  if (from.fit) {
    const Vec3f half = Vec3f::Constant(static_cast<float>(*from.fit) / 2);
    fit_mesh_into(mesh, {to - half, to + half});
  } else {
    transform_mesh(mesh, {static_cast<float>(from.scale), Mat3f::Identity(), to});
  }
  return mesh;
}

// A mesh collider in its own frame, which has the collider's centre at 0 and is not turned.
struct MeshColliderShape {
  DistanceGrid distance;
  float radius_m = 0;  // around the centre
};

// Loads a mesh collider. The same one is kept as long as somebody has it, and its file stays as it is.
// Thread-safe. Errors: those of the mesh, at its place in the scene.
std::shared_ptr<const MeshColliderShape> load_mesh_collider(const scene::SceneConfig& scene,
                                                            const scene::Collider& collider);

}  // namespace coppice::mpm
