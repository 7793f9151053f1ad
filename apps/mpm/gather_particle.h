// A particle takes its motion from the nodes of the grid around it.
//
// Device-clean.
#pragma once
#include "apps/mpm/flip_motion.h"
#include "apps/mpm/settle_particle.h"

namespace coppice::mpm {

// Gives a particle its new velocity and velocity gradient, and its new position where it `moves`:
// settle_particle() moves the others. Returns the gradient. With a `per_density`, 1 / (the density of its
// material at rest times a cell's volume), the density that its nodes have, relative to that, is left where
// its stress was.
template <int D>
COPPICE_INLINE SmallMat<float, D> gather_particle(const StepArguments<D>& a, const Particle& p,
                                                  const std::int32_t* first, const NodeValue* tile,
                                                  float per_density, bool moves, BlockFindings& found) {
  using A = Attribute<D>;
  const TileStencil<D> s = tile_stencil<D>(p, a.inv_dx, first);
  Float4 velocity{0, 0, 0, 0}, gradient[3] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  constexpr int nx = D == 3 ? 3 : 1;
  COPPICE_UNROLL
  for (int ix = 0; ix < nx; ++ix) {
    COPPICE_UNROLL
    for (int iy = 0; iy < 3; ++iy) {
      const float w_xy = D == 3 ? s.w[0][ix] * s.w[1][iy] : s.w[1][iy];
      const NodeValue* row = tile + tile_index<D>(s.base[0] + ix, s.base[1] + iy, s.base[2]);
      Float4 along{0, 0, 0, 0};
      COPPICE_UNROLL
      for (int iz = 0; iz < 3; ++iz) {
        const Float4 part = (w_xy * s.w[2][iz]) * load(row + iz);
        along += part;
        gradient[2] += part * (static_cast<float>(iz) - s.fx[2]);
      }
      velocity += along;
      gradient[1] += along * (static_cast<float>(iy) - s.fx[1]);
      if constexpr (D == 3) gradient[0] += along * (static_cast<float>(ix) - s.fx[0]);
    }
  }
  const float gradient_scale = 4.0f * a.inv_dx;
  SmallMat<float, D> scaled{};
  float speed2 = 0.0f;
  bool inside = true;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const int axis = 3 - D + k;
    const float at = p[A::kPosition + k];
    const float moved = moves ? clamp_to(at + a.dt * velocity[k], low_end(a), high_end(a, k)) : at;
    p[A::kPosition + k] = moved;
    p[A::kVelocity + k] = velocity[k];
    speed2 += velocity[k] * velocity[k];
    inside = inside && is_in_tile<D>(moved * a.inv_dx - static_cast<float>(first[axis]));
    COPPICE_UNROLL
    for (int r = 0; r < D; ++r)
      p[A::kAffine + r * D + k] = scaled.m[r * D + k] = gradient[axis][r] * gradient_scale;
  }
  if (per_density > 0.0f) p[A::kStress] = velocity[3] * per_density;
  found.drifted = found.drifted || !inside;
  // A NaN fails every comparison; the clamp above hides it from positions, never from velocities.
  found.not_finite = found.not_finite || !(speed2 < 1e30f);
  found.max_speed2 = speed2 > found.max_speed2 ? speed2 : found.max_speed2;
  return scaled;
}

// The same with wide nodes: the density is that of volumes, and the particle keeps a part of its own motion,
// which it has only when colliders have stopped it on its way with the grid.
template <int D>
COPPICE_INLINE void gather_wide_particle(const StepArguments<D>& a, const Group<D>& group, const Particle& p,
                                         const std::int32_t* first, std::int64_t block_number,
                                         const NodeValue* tile, const Surroundings& beside, bool settles,
                                         BlockFindings& found) {
  OwnMotion<D> own{};
  float filled = 0.0f;
  if (a.flip > 0.0f) {
    const SeenBefore<D> seen = see_before<D>(a, p, first, tile);
    gather_particle<D>(a, p, first, tile, 0.0f, !settles, found);
    own = kept_motion<D>(a, p, seen);
    filled = seen.filled;
  } else {
    filled = filled_around<D>(a, p, first, tile);
    gather_particle<D>(a, p, first, tile, 0.0f, !settles, found);
  }
  p[Attribute<D>::kStress] = filled;
  if (settles) settle_particle<D>(a, group, p, first, block_number, beside, found);
  if (a.flip > 0.0f) return add_own_motion<D>(a, group, p, block_number, beside, own, found);
  COPPICE_UNROLL for (int k = 0; k < (D == 2 ? 1 : 3); ++k) p[kOwnSpin<D> + k] = 0.0f;
}

// Returns the gradient that was gathered, and left as a part of the particle's affine motion.
template <int D, bool kWide>
COPPICE_INLINE SmallMat<float, D> gathered_gradient(const Particle& p) {
  SmallMat<float, D> gradient{};
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) gradient.m[k] = p[Attribute<D>::kAffine + k];
  if constexpr (kWide) add_spin<D>(gradient, -1.0f, own_spin<D>(p));
  return gradient;
}

}  // namespace coppice::mpm
