// The signed distance of a mesh on the nodes of a grid.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/geometry/shapes.h"
#include "core/math.h"

namespace coppice {

struct DistanceGrid {
  Vec3i nodes = Vec3i::Zero();
  Vec3f low = Vec3f::Zero();  // m, of node (0, 0, 0)
  float spacing_m = 0;
  std::vector<float> values;  // f32[nodes.x][nodes.y][nodes.z], m, negative inside
};

struct DistanceGridOptions {
  float spacing_m = 0;  // of the nodes, where there are not too many then; else wider
  float margin_m = 0;   // around the mesh's bounds
  int64_t most_nodes = int64_t{1} << 21;
};

// Inside is what `shape`, which is of the same mesh, contains: where the winding number is above one half.
// The distance is exact at the nodes next to the surface; farther away that to a triangle nearby, which may
// not be the nearest. Cost: about a microsecond a node.
DistanceGrid signed_distance(const TriangleMesh& mesh, const MeshShape& shape,
                             const DistanceGridOptions& options);

// Returns the distance at a point, trilinear between nodes; outside of them more than 0.
float distance_at(const DistanceGrid& grid, const Vec3f& point);

// The distance of a point from a triangle, m.
float distance_to_triangle(const Vec3f& p, const Vec3f& a, const Vec3f& b, const Vec3f& c);

}  // namespace coppice
