// Exact distances beside the surface, spread from there by sweeps (see signed_distance.h).
//
// After Bridson's makelevelset3 (SDFGen): each node knows a triangle that is near; a sweep offers it those of
// its neighbours.
#include "apps/geometry/signed_distance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace coppice {
namespace {

class Distances {
 public:
  Distances(const TriangleMesh& mesh, DistanceGrid& grid)
      : mesh_(mesh), grid_(grid), nearest_(grid.values.size(), -1) {}

  void add_triangles() {
    for (size_t t = 0; t < mesh_.triangles.size(); ++t) add_triangle(static_cast<int32_t>(t));
  }
  void sweep() {
    for (int round = 0; round < 2; ++round) {
      for (int direction = 0; direction < 8; ++direction) sweep(direction);
    }
  }

 private:
  size_t index(const Vec3i& at) const {
    const auto n = [&](int k) { return static_cast<size_t>(grid_.nodes[k]); };
    return (static_cast<size_t>(at.x()) * n(1) + static_cast<size_t>(at.y())) * n(2) +
           static_cast<size_t>(at.z());
  }
  float distance(const Vec3i& at, int32_t triangle) const {
    const Vec3i& t = mesh_.triangles[static_cast<size_t>(triangle)];
    const auto corner = [&](int k) -> const Vec3f& { return mesh_.vertices[static_cast<size_t>(t[k])]; };
    const Vec3f p = grid_.low + grid_.spacing_m * at.cast<float>();
    return distance_to_triangle(p, corner(0), corner(1), corner(2));
  }
  void offer(const Vec3i& at, int32_t triangle) {
    const size_t i = index(at);
    if (triangle < 0 || nearest_[i] == triangle) return;
    const float d = distance(at, triangle);
    if (d < grid_.values[i]) grid_.values[i] = d, nearest_[i] = triangle;
  }
  void add_triangle(int32_t triangle) {
    Vec3f low = Vec3f::Constant(std::numeric_limits<float>::max()), high = -low;
    for (int k = 0; k < 3; ++k) {
      const Vec3i& t = mesh_.triangles[static_cast<size_t>(triangle)];
      const Vec3f& p = mesh_.vertices[static_cast<size_t>(t[k])];
      low = low.cwiseMin(p), high = high.cwiseMax(p);
    }
    // All nodes of the cells that it passes.
    const Vec3f from = (low - grid_.low) / grid_.spacing_m, to = (high - grid_.low) / grid_.spacing_m;
    const Vec3i first = (from.array().floor().cast<int>() - 1).matrix().cwiseMax(Vec3i::Zero());
    const Vec3i last =
        (to.array().floor().cast<int>() + 2).matrix().cwiseMin(Vec3i(grid_.nodes - Vec3i::Ones()));
    for (int x = first.x(); x <= last.x(); ++x)
      for (int y = first.y(); y <= last.y(); ++y)
        for (int z = first.z(); z <= last.z(); ++z) offer({x, y, z}, triangle);
  }
  void sweep(int direction) {
    const std::array<int, 3> step{(direction & 1) != 0 ? 1 : -1, (direction & 2) != 0 ? 1 : -1,
                                  (direction & 4) != 0 ? 1 : -1};
    Vec3i i;
    for (i.x() = 0; i.x() < grid_.nodes.x(); ++i.x()) {
      for (i.y() = 0; i.y() < grid_.nodes.y(); ++i.y()) {
        for (i.z() = 0; i.z() < grid_.nodes.z(); ++i.z()) {
          Vec3i at = i;
          for (int k = 0; k < 3; ++k)
            if (step[static_cast<size_t>(k)] < 0) at[k] = grid_.nodes[k] - 1 - i[k];
          for (int k = 0; k < 3; ++k) {
            Vec3i before = at;
            before[k] -= step[static_cast<size_t>(k)];
            if (before[k] >= 0 && before[k] < grid_.nodes[k]) offer(at, nearest_[index(before)]);
          }
        }
      }
    }
  }

  const TriangleMesh& mesh_;
  DistanceGrid& grid_;
  std::vector<int32_t> nearest_;  // [n_nodes] a triangle, or -1
};

// A node that is farther from the surface than from its neighbour is on the neighbour's side, unless there is
// a hole between them.
void set_signs(const MeshShape& shape, DistanceGrid& grid) {
  const bool is_closed = shape.open_edges() == 0;
  size_t i = 0;
  for (int x = 0; x < grid.nodes.x(); ++x) {
    for (int y = 0; y < grid.nodes.y(); ++y) {
      bool was_inside = false;
      for (int z = 0; z < grid.nodes.z(); ++z, ++i) {
        const bool follows = z > 0 && is_closed && grid.values[i] > 1.001f * grid.spacing_m;
        const Vec3f p = grid.low + grid.spacing_m * Vec3i(x, y, z).cast<float>();
        was_inside = follows ? was_inside : shape.contains(p);
        if (was_inside) grid.values[i] = -grid.values[i];
      }
    }
  }
}

}  // namespace

// Ericson, Real-Time Collision Detection, section 5.1.5: by the Voronoi region that the point is in.
float distance_to_triangle(const Vec3f& p, const Vec3f& a, const Vec3f& b, const Vec3f& c) {
  const Vec3f ab = b - a, ac = c - a, ap = p - a;
  const float d1 = ab.dot(ap), d2 = ac.dot(ap);
  if (d1 <= 0 && d2 <= 0) return ap.norm();
  const Vec3f bp = p - b;
  const float d3 = ab.dot(bp), d4 = ac.dot(bp);
  if (d3 >= 0 && d4 <= d3) return bp.norm();
  const float vc = d1 * d4 - d3 * d2;
  if (vc <= 0 && d1 >= 0 && d3 <= 0) return (ap - d1 / std::max(d1 - d3, 1e-30f) * ab).norm();
  const Vec3f cp = p - c;
  const float d5 = ab.dot(cp), d6 = ac.dot(cp);
  if (d6 >= 0 && d5 <= d6) return cp.norm();
  const float vb = d5 * d2 - d1 * d6;
  if (vb <= 0 && d2 >= 0 && d6 <= 0) return (ap - d2 / std::max(d2 - d6, 1e-30f) * ac).norm();
  const float va = d3 * d6 - d5 * d4, along = d4 - d3, back = d5 - d6;
  if (va <= 0 && along >= 0 && back >= 0)
    return (bp - along / std::max(along + back, 1e-30f) * (c - b)).norm();
  const float whole = std::max(va + vb + vc, 1e-30f);
  return (ap - vb / whole * ab - vc / whole * ac).norm();
}

float distance_at(const DistanceGrid& grid, const Vec3f& point) {
  const Vec3f x = (point - grid.low) / grid.spacing_m;
  const Vec3f last = (grid.nodes - Vec3i::Ones()).cast<float>();
  if ((x.array() < 0).any() || (x.array() >= last.array()).any()) return grid.spacing_m;
  const Vec3i cell = x.cast<int>();
  const Vec3f part = x - cell.cast<float>();
  float sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    float weight = 1;
    size_t at = 0;
    for (int k = 0; k < 3; ++k) {
      const int step = corner >> k & 1;
      weight *= step != 0 ? part[k] : 1 - part[k];
      at = at * static_cast<size_t>(grid.nodes[k]) + static_cast<size_t>(cell[k] + step);
    }
    sum += weight * grid.values[at];
  }
  return sum;
}

DistanceGrid signed_distance(const TriangleMesh& mesh, const MeshShape& shape,
                             const DistanceGridOptions& options) {
  const Aabb3f bounds = mesh_bounds(mesh);
  const Vec3f size = bounds.size() + Vec3f::Constant(2 * options.margin_m);
  DistanceGrid grid;
  grid.low = bounds.min - Vec3f::Constant(options.margin_m);
  grid.spacing_m = options.spacing_m;
  const auto cells = [&](int k) { return std::max(1.0, std::ceil(double{size[k]} / grid.spacing_m)); };
  while ((cells(0) + 1) * (cells(1) + 1) * (cells(2) + 1) > static_cast<double>(options.most_nodes))
    grid.spacing_m *= 1.1f;
  for (int k = 0; k < 3; ++k) grid.nodes[k] = static_cast<int>(cells(k)) + 1;
  grid.values.assign(static_cast<size_t>(grid.nodes.x()) * static_cast<size_t>(grid.nodes.y()) *
                         static_cast<size_t>(grid.nodes.z()),
                     std::numeric_limits<float>::max());
  Distances distances(mesh, grid);
  distances.add_triangles();
  distances.sweep();
  set_signs(shape, grid);
  return grid;
}

}  // namespace coppice
