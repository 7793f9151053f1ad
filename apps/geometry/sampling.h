// Fills shapes with particles by stratified, jittered sampling.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/geometry/shapes.h"
#include "core/math.h"

namespace coppice {

struct SamplingOptions {
  int dim = 3;                 // 2 samples the plane z = 0
  float dx = 0;                // spacing of the grid, whose cells start at whole multiples of dx
  int particles_per_cell = 8;  // in a cell that lies inside altogether
  uint64_t seed = 0;
};

// The particles of `shape`: each grid cell is cut into the least k^dim >= particles_per_cell sub-cells, of
// which particles_per_cell are drawn (all of them when it is a perfect power), and each gets one uniformly
// placed point, kept when the shape contains it. Returned in order of cell (x slowest) and sub-cell: a
// function of the arguments alone, not of the number of threads. Two shapes sampled with one seed share their
// points where they overlap. Runs on all TBB threads and blocks; the cost is one contains() per point of the
// shape's bounds. Errors: kInvalidArgument for a dim, dx or particles_per_cell without sense, or so fine that
// there are over 2^31 points.
std::vector<Vec3f> sample_particles(const Shape& shape, const SamplingOptions& options);

}  // namespace coppice
