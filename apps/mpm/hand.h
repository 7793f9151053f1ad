// A hand acts on single particles between two steps: it pushes those in a stroke, and is told which ones a
// cut leaves, and which places are taken when others come.
//
// Device-clean. Positions as in solver_types.h, from the grid's node (0, 0, 0).
#pragma once
#include <cmath>

#include "apps/mpm/solver_types.h"
#include "gpu/device_intrinsics.h"

namespace coppice::mpm {

// A capsule has all points no farther than `radius` from the segment that begins at `start`.
template <int D>
struct Capsule {
  SmallVec<float, D> start, along;  // m
  float radius;                     // m
};

// The squared distance from the segment by the squared radius: below 1 inside, 0 on the segment.
template <int D>
COPPICE_INLINE float relative_distance2(const Capsule<D>& c, SmallVec<float, D> x) {
  const SmallVec<float, D> to = x - c.start;
  const float length2 = dot(c.along, c.along);
  const float where = length2 > 0.0f ? clamp_to(dot(to, c.along) / length2, 0.0f, 1.0f) : 0.0f;
  const SmallVec<float, D> away = to - where * c.along;
  return dot(away, away) / (c.radius * c.radius);
}

// The part of a push that a particle gets: 1 on the segment, 0 from the edge on, smooth at both.
COPPICE_INLINE constexpr float push_share(float relative_distance2) {
  const float left = max_of(1.0f - relative_distance2, 0.0f);
  return left * left;
}

template <int D>
COPPICE_INLINE SmallVec<float, D> position_of(const ParticleArrays& p, std::int64_t i) {
  SmallVec<float, D> x{};
  COPPICE_UNROLL for (int k = 0; k < D; ++k) x.v[k] = p.base[(Attribute<D>::kPosition + k) * p.stride + i];
  return x;
}

// `max_speed_bits`: of a StepControl, which learns of those that are faster now.
template <int D>
COPPICE_INLINE void push_particle(const ParticleArrays& p, std::int64_t i, const Capsule<D>& stroke,
                                  SmallVec<float, D> velocity, std::uint32_t* max_speed_bits) {
  const float share = push_share(relative_distance2(stroke, position_of<D>(p, i)));
  if (!(share > 0.0f)) return;
  float speed2 = 0.0f;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    float& v = p.base[(Attribute<D>::kVelocity + k) * p.stride + i];
    v += share * velocity.v[k];
    speed2 += v * v;
  }
  coppice_fetch_max_u32(max_speed_bits, __builtin_bit_cast(std::uint32_t, std::sqrt(speed2)));
}

template <int D>
COPPICE_INLINE void mark_kept(const ParticleArrays& p, std::int64_t i, const Capsule<D>& stroke,
                              std::uint32_t* is_kept) {
  is_kept[i] = relative_distance2(stroke, position_of<D>(p, i)) <= 1.0f ? 0 : 1;
}

// The sub-cells around a ball, one of which has about one particle. Sub-cell 0 begins at `first`, in
// sub-cells from the grid's node (0, 0, 0): not a whole number where the domain
// begins off the samples' lattice.
template <int D>
struct Subcells {
  SmallVec<float, D> first;
  float per_m;
  std::int32_t extent[D];
};

// A sub-cell's number, or -1 outside of them.
template <int D>
COPPICE_INLINE std::int64_t subcell_of(const Subcells<D>& s, SmallVec<float, D> x) {
  std::int64_t number = 0;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const float at = std::floor(x.v[k] * s.per_m - s.first.v[k]);
    if (!(at >= 0.0f && at < static_cast<float>(s.extent[k]))) return -1;
    number = number * s.extent[k] + static_cast<std::int32_t>(at);
  }
  return number;
}

template <int D>
COPPICE_INLINE void mark_taken(const ParticleArrays& p, std::int64_t i, const Subcells<D>& s,
                               std::uint32_t* is_taken) {
  const std::int64_t number = subcell_of(s, position_of<D>(p, i));
  if (number >= 0) coppice_fetch_max_u32(is_taken + number, 1u);
}

}  // namespace coppice::mpm
