// When points that all move with one velocity enter a closed mesh.
//
// The triangles are projected along the velocity and binned in the plane across it, so that a point's path
// meets those of one bin. A path that passes through an edge or a corner crosses exactly one of the triangles
// there: each edge is decided in one direction for both. Inside is where the winding number is not 0, which
// the crossings ahead add up to. Constant after construction; any thread may call at any time.
#pragma once
#include <cstdint>
#include <vector>

#include "apps/geometry/mesh.h"
#include "core/math.h"

namespace coppice {

class MeshSweep {
 public:
  // The mesh has no open edges (open_edge_count()); `velocity` is not zero.
  MeshSweep(const TriangleMesh& mesh, const Vec3d& velocity);

  // Returns when a point that is at `place` at 0 is in the mesh for the first time, s: 0 where it is in it
  // already, infinity for never.
  double entry_s(const Vec3d& place) const;
  // Returns the area that the mesh covers as seen along the velocity, m^2, counted by 256 x 256 lines through
  // its bounds.
  double covered_area() const;
  // The bounds' corners, m.
  const Vec3d& low() const { return low_; }
  const Vec3d& high() const { return high_; }

 private:
  // The corners in the plane, and when a point at 0 along the velocity comes to each, s.
  struct Triangle {
    Vec2d corner[3];
    Vec3d time_s;
    int sign;  // of the winding number's change when a path leaves through it: 1 or -1
  };
  struct Crossing {
    double time_s;
    int sign;
  };
  Vec2d project(const Vec3d& place) const { return {across_[0].dot(place), across_[1].dot(place)}; }
  Vec2d bin_of(const Vec2d& at) const { return (at - plane_low_).cwiseProduct(bins_per_m_); }
  void put_into_bins();
  void crossings(const Vec3d& place, std::vector<Crossing>& found) const;

  Vec3d along_;      // s/m: its product with a place is the time to come there
  Vec3d across_[2];  // unit
  Vec3d low_, high_;
  Vec2d plane_low_, plane_high_, bins_per_m_;  // of the projection
  int bins_ = 1;                               // per axis
  std::vector<Triangle> triangles_;
  std::vector<uint32_t> starts_, lists_;  // [bins^2 + 1] first of a bin, and triangles of the bins
};

}  // namespace coppice
