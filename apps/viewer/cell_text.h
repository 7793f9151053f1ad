// Finds the cell of a tree that a point of the world lies in, and names it.
#pragma once
#include <string>

#include "apps/render/volume_style.h"
#include "core/math.h"

namespace coppice::viewer {

// Returns the cell that the point lies in, counted along the tree's axes, 0 on axes that it lacks.
// `bounds` becomes the cell's box in the world, which has no height along those.
Vec3i cell_at(const Vec3f& point_m, const render::VolumePlacement& placement, int dim, Aabb3f& bounds);
// Returns "(12, 3, 40)".
std::string name_of_cell(const Vec3i& cell, int dim);

}  // namespace coppice::viewer
