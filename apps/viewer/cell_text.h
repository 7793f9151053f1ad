// Which cell of a tree a point of the world lies in, and what it is called.
#pragma once
#include <string>

#include "apps/render/volume_style.h"
#include "core/math.h"

namespace coppice::viewer {

// In cells by axis of the tree, 0 on axes that it lacks; and where that cell is, which has no height there.
Vec3i cell_at(const Vec3f& point_m, const render::VolumePlacement& placement, int dim, Aabb3f& bounds);
// "(12, 3, 40)".
std::string name_of_cell(const Vec3i& cell, int dim);

}  // namespace coppice::viewer
