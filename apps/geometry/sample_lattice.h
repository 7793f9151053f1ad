// The lattice of stratified samples that sampling.h describes, without bounds: each cell's samples are a
// function of the options and the cell alone.
#pragma once

#include <array>
#include <cstdint>

#include "apps/geometry/philox.h"
#include "apps/geometry/sampling.h"
#include "core/math.h"

namespace coppice {

class SampleLattice {
 public:
  // Errors: kInvalidArgument for a dim, dx or particles_per_cell without sense.
  explicit SampleLattice(const SamplingOptions& options);

  // Calls visit(point) for each sample of a cell, in order of sub-cell; z is 0 in 2-D. Points are in 64 bits:
  // a lattice that moves has cells far away.
  template <class Visit>
  void visit_cell(const std::array<int32_t, 3>& cell, Visit&& visit) const;

 private:
  SamplingOptions options_;
  int k_ = 1;           // sub-cells per axis
  int n_subcells_ = 1;  // k^dim
};

template <class Visit>
void SampleLattice::visit_cell(const std::array<int32_t, 3>& cell, Visit&& visit) const {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(options_.seed),
                                    static_cast<uint32_t>(options_.seed >> 32)};
  int wanted = options_.particles_per_cell;
  for (int subcell = 0; subcell < n_subcells_ && wanted > 0; ++subcell) {
    const std::array<uint32_t, 4> random =
        philox4x32({static_cast<uint32_t>(cell[0]), static_cast<uint32_t>(cell[1]),
                    static_cast<uint32_t>(cell[2]), static_cast<uint32_t>(subcell)},
                   key);
    // Selection sampling (Knuth, volume 2, 3.4.2, algorithm S): exactly `wanted` of those left, all subsets
    // alike.
    if (uniform_float(random[3]) * static_cast<float>(n_subcells_ - subcell) >= static_cast<float>(wanted))
      continue;
    --wanted;
    const std::array<int, 3> sub{subcell % k_, subcell / k_ % k_, subcell / (k_ * k_)};
    Vec3d point = Vec3d::Zero();
    for (int axis = 0; axis < options_.dim; ++axis) {
      const double in_cell = (sub[axis] + static_cast<double>(uniform_float(random[axis]))) / k_;
      point[axis] = (cell[axis] + in_cell) * options_.dx;
    }
    visit(point);
  }
}

}  // namespace coppice
