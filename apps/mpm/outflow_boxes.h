// Boxes that take particles out.
//
// Device-clean. Positions as in solver_types.h, from the grid's node (0, 0, 0).
#pragma once
#include "apps/mpm/hand.h"

namespace coppice::mpm {

template <int D>
struct OutflowBox {
  SmallVec<float, D> center, half;  // m
};

template <int D>
COPPICE_INLINE bool contains(const OutflowBox<D>& box, SmallVec<float, D> x) {
  bool is_inside = true;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k)
    is_inside =
        is_inside && x.v[k] - box.center.v[k] <= box.half.v[k] && box.center.v[k] - x.v[k] <= box.half.v[k];
  return is_inside;
}

// `is_kept` of particle i becomes 0 where a box contains it, and counts[its group] goes up, or else 1.
template <int D>
COPPICE_INLINE void mark_outflow(const ParticleArrays& p, std::int64_t i, const OutflowBox<D>* boxes,
                                 std::uint32_t n_boxes, std::uint32_t* is_kept, std::uint32_t* counts) {
  const SmallVec<float, D> x = position_of<D>(p, i);
  bool is_out = false;
  for (std::uint32_t b = 0; b < n_boxes; ++b) is_out = is_out || contains(boxes[b], x);
  is_kept[i] = is_out ? 0 : 1;
  if (is_out)
    coppice_fetch_add_u32(counts + static_cast<int>(p.base[Attribute<D>::kGroup * p.stride + i]), 1);
}

}  // namespace coppice::mpm
