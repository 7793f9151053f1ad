// A particle takes its motion from the nodes of the grid around it.
//
// Device-clean.
#pragma once
#include "apps/mpm/flip_motion.h"
#include "apps/mpm/particle_batch.h"
#include "apps/mpm/settle_particle.h"

namespace coppice::mpm {

// A particle's share of its nodes' motion.
template <int D>
struct Gathered {
  SmallVec<float, D> velocity;  // m/s
  SmallMat<float, D> gradient;  // 1/s, (component, axis)
  float counted;                // of the nodes' fourth number
};
template <int D>
COPPICE_INLINE Gathered<D> gathered(const Taken& taken, float inv_dx) {
  Gathered<D> g{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    g.velocity.v[k] = taken.value[k];
    COPPICE_UNROLL
    for (int r = 0; r < D; ++r) g.gradient(r, k) = taken.along[3 - D + k][r] * (4.0f * inv_dx);
  }
  g.counted = taken.value[3];
  return g;
}

// Particles find this out as they take their motion; 1 is true, so that a loop over them vectorises.
struct MotionFindings {
  std::uint32_t drifted = 0, not_finite = 0;
  std::int32_t max_speed2_bits = 0;  // the bits of numbers that are not negative order like these
};
COPPICE_INLINE void merge(const MotionFindings& of_some, BlockFindings& found) {
  found.drifted = found.drifted || of_some.drifted != 0;
  found.not_finite = found.not_finite || of_some.not_finite != 0;
  found.max_speed2 = max_of(__builtin_bit_cast(float, of_some.max_speed2_bits), found.max_speed2);
}

// Gives a particle its new velocity and velocity gradient, and its new position where it `moves`:
// settle_particle() moves the others. With a `per_density`, 1 / (the density of its material at rest times a
// cell's volume), the density that its nodes have, relative to that, is left where its stress was.
template <int D>
COPPICE_INLINE void set_motion(const StepArguments<D>& a, const Particle& p, const std::int32_t* first,
                               const Gathered<D>& g, float per_density, bool moves, MotionFindings& found) {
  using A = Attribute<D>;
  float speed2 = 0.0f;
  std::uint32_t drifted = 0;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const float at = p[A::kPosition + k], v = g.velocity.v[k];
    const float moved = moves ? clamp_to(at + a.dt * v, low_end(a), high_end(a, k)) : at;
    p[A::kPosition + k] = moved;
    p[A::kVelocity + k] = v;
    speed2 += v * v;
    drifted |= is_in_tile<D>(moved * a.inv_dx - static_cast<float>(first[3 - D + k])) ? 0u : 1u;
    COPPICE_UNROLL for (int r = 0; r < D; ++r) p[A::kAffine + r * D + k] = g.gradient(r, k);
  }
  if (per_density > 0.0f) p[A::kStress] = g.counted * per_density;
  found.drifted |= drifted;
  // A NaN fails every comparison; the clamp above hides it from positions, never from velocities.
  const bool is_finite = speed2 < 1e30f;
  const std::int32_t bits = __builtin_bit_cast(std::int32_t, is_finite ? speed2 : 0.0f);
  found.not_finite |= is_finite ? 0u : 1u;
  found.max_speed2_bits = bits > found.max_speed2_bits ? bits : found.max_speed2_bits;
}

// A GPU's thread gathers for a particle. Returns the gradient.
template <int D>
COPPICE_INLINE SmallMat<float, D> gather_particle(const StepArguments<D>& a, const Particle& p,
                                                  const std::int32_t* first, const NodeValue* tile,
                                                  float per_density, bool moves, BlockFindings& found) {
  const Taken taken = take_from_nodes<D>(tile_stencil<D>(p, a.inv_dx, first), tile,
                                         [](const NodeValue*, Float4) __attribute__((always_inline)){});
  const Gathered<D> g = gathered<D>(taken, a.inv_dx);
  MotionFindings own;
  set_motion<D>(a, p, first, g, per_density, moves, own);
  merge(own, found);
  return g.gradient;
}

// A CPU's thread gathers for a batch.
template <int D>
COPPICE_INLINE void gather_batch(const StepArguments<D>& a, const ParticleArrays& batch,
                                 const std::int32_t* first, const NodeValue* tile, float per_density,
                                 bool moves, BlockFindings& found) {
  BatchNumbers stencils, taken;
  std::int32_t bases[kBatch];
  find_stencils<D>(a, batch, first, stencils, bases);
  for (int p = 0; p < kBatch; ++p)
    taken.row(p) = take_from_rows<D>(stencils.v[p], tile + bases[p],
                                     [](const NodeValue*, float) __attribute__((always_inline)){});
  transpose(taken);
  MotionFindings of_batch;
#pragma clang loop vectorize(assume_safety) interleave_count(1)
  for (int p = 0; p < kBatch; ++p) {
    Gathered<D> g{};
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k) {
      g.velocity.v[k] = taken.v[k][p];
      COPPICE_UNROLL
      for (int r = 0; r < D; ++r) g.gradient(r, k) = taken.v[4 * (4 - D + k) + r][p] * (4.0f * a.inv_dx);
    }
    g.counted = taken.v[3][p];
    set_motion<D>(a, particle(batch, p), first, g, per_density, moves, of_batch);
  }
  merge(of_batch, found);
}

// The same with wide nodes, in which a particle's density is that of volumes, and it keeps a part of its own
// motion; it has that only when colliders have stopped it on its way with the grid. `around` is WideNodes or
// WideRows.
template <int D, class Around>
COPPICE_INLINE void gather_wide_particle(const StepArguments<D>& a, const Group<D>& group, const Particle& p,
                                         const std::int32_t* first, std::int64_t block_number,
                                         const Around& around, const Surroundings& beside, bool settles,
                                         BlockFindings& found) {
  MotionFindings of_one;
  const auto set = [&]() __attribute__((always_inline)) {
    set_motion<D>(a, p, first, gathered<D>(around.now(), a.inv_dx), 0.0f, !settles, of_one);
  };
  OwnMotion<D> own{};
  float filled = 0.0f;
  if (a.flip > 0.0f) {
    const TakenBefore before = around.before();
    const SeenBefore<D> seen = see_before<D>(a, p, before);
    filled = before.taken.value[3];
    set();
    own = kept_motion<D>(a, p, seen);
  } else {
    filled = around.filled();
    set();
  }
  merge(of_one, found);
  p[Attribute<D>::kStress] = filled;
  if (settles) settle_particle<D>(a, group, p, first, block_number, beside, found);
  if (a.flip > 0.0f) return add_own_motion<D>(a, group, p, block_number, beside, own, found);
  COPPICE_UNROLL for (int k = 0; k < (D == 2 ? 1 : 3); ++k) p[kOwnSpin<D> + k] = 0.0f;
}

template <int D, class Team>
COPPICE_INLINE void gather_wide_batch(const StepArguments<D>& a, const Group<D>& group,
                                      const ParticleArrays& batch, int n, const NodeValue* tile,
                                      const Team& block, const Surroundings& beside, bool settles,
                                      BlockFindings& found) {
  const auto gather = [&](const Particle& p, const auto& around) __attribute__((always_inline)) {
    gather_wide_particle<D>(a, group, p, block.origin, block.number, around, beside, settles, found);
  };
  if (block.lanes() > 1) {
    const Particle p = particle(batch, 0);
    return gather(p, WideNodes<D>{a, p, block.origin, tile});
  }
  BatchNumbers stencils;
  std::int32_t bases[kBatch];
  find_stencils<D>(a, batch, block.origin, stencils, bases);
  for (int i = 0; i < n; ++i) gather(particle(batch, i), WideRows<D>{stencils.v[i], tile + bases[i]});
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
