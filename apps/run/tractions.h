// Mean tractions on colliders: the material's force by an area, split along the normal and across it.
#pragma once
#include <cstddef>
#include <vector>

#include "apps/mpm/solver_output.h"
#include "apps/run/stats_columns.h"
#include "apps/scene/scene.h"

namespace coppice {

// Adds the columns of a collider whose scene::Collider::tractions is on: those of a box's sides, or of a
// plane. A normal traction is positive where the material presses; shear is what it drags along. `time_s` is
// the frame's end; a plane stands as in the frame's middle.
void add_tractions(const scene::SceneConfig& scene, size_t collider, const mpm::ColliderForce& force,
                   double time_s, std::vector<StatsColumn>& to);

// Returns the area of the part of a plane that is in the domain, m^2; in 2-D the length of the line's, m.
double plane_area_in_domain(const scene::SceneConfig& scene, const Vec3d& point, const Vec3d& normal);

}  // namespace coppice
