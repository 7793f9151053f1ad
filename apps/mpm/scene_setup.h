// A scene's materials, geometry and colliders as kernels take them: in 32 bits, and with metres from the
// grid's node (0, 0, 0) as coordinates.
#pragma once
#include "apps/mpm/solver_types.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// Returns the world's position of the grid's node (0, 0, 0), m.
Vec3d grid_origin(const scene::SceneConfig& scene);

// Returns the first D coordinates.
template <int D>
SmallVec<float, D> small(const Vec3d& v) {
  SmallVec<float, D> s{};
  for (int a = 0; a < D; ++a) s.v[a] = static_cast<float>(v[a]);
  return s;
}

// Returns whether the scene's transfers need a second value at each node (solver_types.h).
bool has_wide_nodes(const scene::SceneConfig& scene);

// A particle's volume is `volume_factor` times its share of a cell.
template <int D>
Group<D> make_group(const scene::SceneConfig& scene, const scene::Emitter& emitter, double volume_factor);

// Returns what a new particle of the group has as its material's scalar.
template <int D>
float initial_scalar(const Group<D>& group);

// Sets the cell's size, the domain's cells and walls, and gravity.
template <int D>
void set_geometry(const scene::SceneConfig& scene, StepArguments<D>& arguments);

// Errors: kInvalidArgument for more colliders than a step takes.
void require_few_colliders(const scene::SceneConfig& scene);
// Lets those with keyframes move on from a time, which is one of theirs or between two steps.
template <int D>
void set_motions(const scene::SceneConfig& scene, double time_s, StepControl<D>& control);
// Sets the colliders as they are at the beginning, but for meshes' distances. Errors: kInvalidArgument for
// more than kMaxColliders.
template <int D>
void set_colliders(const scene::SceneConfig& scene, StepControl<D>& control);

}  // namespace coppice::mpm
