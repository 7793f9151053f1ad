// Grid to particles: a block's particles take velocity and velocity gradient from the grid, move, and
// update their deformation and stress.
//
// Device-clean. What limits the next time step, and whether particles must be sorted again, is found on the
// way. Wide nodes have a second value (solver_types.h), in a second tile behind the first.
#pragma once
#include "apps/mpm/gather_particle.h"
#include "apps/mpm/particle_tile.h"

namespace coppice::mpm {

// Copies the velocities a block's particles can see into one tile. A CPU's thread takes whole rows, a GPU's
// single nodes: neighbours in a warp then read side by side, and none of a thread's reads waits for another.
template <int D, class Team>
COPPICE_INLINE void gather_velocities(const Read<NodeValue>& grid, const Team& block, NodeValue* tile) {
  constexpr int b = kBlockSize<D>, t = kTileSize<D>;
  const auto beside = [&](int ox, int oy, int oz) -> const NodeValue* {
    if constexpr (D == 3)
      return grid.neighbour_data(block, {ox, oy, oz});
    else
      return grid.neighbour_data(block, {oy, oz});
  };
  if (block.lanes() > 1) {
    COPPICE_UNROLL
    for (int n = static_cast<int>(block.lane()); n < kTileNodes<D>; n += static_cast<int>(block.lanes())) {
      const int i = n / t / t, j = n / t % t, k = n % t;
      const NodeValue* from = beside(i >= b, j >= b, k >= b);
      store(tile + n, load(from + (i % b * b + j % b) * b + k % b));
    }
    return;
  }
  for (int ox = 0; ox < (D == 3 ? 2 : 1); ++ox) {
    for (int oy = 0; oy < 2; ++oy) {
      for (int oz = 0; oz < 2; ++oz) {
        const NodeValue* from = beside(ox, oy, oz);
        const int ex = D == 2 ? 1 : ox ? t - b : b, ey = oy ? t - b : b, ez = oz ? t - b : b;
        for (int i = 0; i < ex; ++i) {
          for (int j = 0; j < ey; ++j)
            __builtin_memcpy(tile + tile_index<D>(i + ox * b, j + oy * b, oz * b), from + (i * b + j) * b,
                             sizeof(NodeValue) * ez);
        }
      }
    }
  }
}

// Materials that ask for it are told the density that gather_particle() has left.
template <int D, class Material>
COPPICE_INLINE MaterialResponse<float, D> respond(const Material& material, float dt, const Particle& p,
                                                  SmallMat<float, D> deformation,
                                                  SmallMat<float, D> gradient) {
  using A = Attribute<D>;
  if constexpr (Material::kUsesDensity)
    return material.advance(deformation, p[A::kScalar], gradient, dt, p[A::kStress]);
  else
    return material.advance(deformation, p[A::kScalar], gradient, dt);
}

// Gives a particle its new deformation and stress. Returns the bits of its wave modulus.
template <int D, class Material>
COPPICE_INLINE std::int32_t advance_particle(const Material& material, float dt, const Particle& p,
                                             SmallMat<float, D> gradient) {
  using A = Attribute<D>;
  SmallMat<float, D> deformation{};
  if constexpr (Material::kUsesDeformationGradient) {
    COPPICE_UNROLL for (int k = 0; k < D * D; ++k) deformation.m[k] = p[A::kDeformation + k];
  }
  const MaterialResponse<float, D> r = respond<D>(material, dt, p, deformation, gradient);
  if constexpr (Material::kUsesDeformationGradient) {
    COPPICE_UNROLL for (int k = 0; k < D * D; ++k) p[A::kDeformation + k] = r.f.m[k];
  }
  if constexpr (Material::kUsesScalar) p[A::kScalar] = r.scalar;
  int n = A::kStress;
  COPPICE_UNROLL
  for (int row = 0; row < D; ++row) {
    COPPICE_UNROLL
    for (int column = row; column < D; ++column) p[n++] = r.tau.m[row * D + column];
  }
  return __builtin_bit_cast(std::int32_t, r.wave_modulus);
}

// Returns whether a group's particles move in a pass of their own: on a CPU, where a loop over the rest
// vectorises; where nodes are wide, or else the kernel would be too large; and where they meet something.
// Else a GPU's thread does all for a particle, and reads its gradient once.
template <int D, bool kWide>
COPPICE_INLINE bool moves_before(const TileTeam<D, kWide>& block, const Surroundings& beside,
                                 const Group<D>& group) {
  return kWide || block.lanes() == 1 || beside.count(group) || beside.inner_walls != 0;
}

// Deformation, plasticity and stress of a segment, which is of one material, and its motion where it has not
// moved before. A CPU's thread takes batches, a GPU's single particles.
template <int D, bool kWide, class Material>
COPPICE_INLINE void advance_segment(const StepArguments<D>& a, const Material& material,
                                    const Group<D>& group, std::int64_t begin, std::int64_t end,
                                    const TileTeam<D, kWide>& block, const NodeValue* tile,
                                    const Surroundings& beside, BlockFindings& found) {
  const bool alone = block.lanes() == 1, has_moved = moves_before<D, kWide>(block, beside, group);
  // The maximum is taken over the bits, which order like the floats as moduli are not negative: LLVM does not
  // vectorise a float maximum without permission to ignore NaN.
  std::int32_t largest = 0;
  const auto advance = [&](const ParticleArrays& particles, int) __attribute__((always_inline)) {
#pragma clang loop vectorize(assume_safety) interleave_count(1)
    for (int i = 0; i < (alone ? kBatch : 1); ++i) {
      const Particle p = particle(particles, i);
      SmallMat<float, D> gradient{};
      if (kWide || has_moved)
        gradient = gathered_gradient<D, kWide>(p);
      else if constexpr (!kWide)
        gradient = gather_particle<D>(a, p, block.origin, tile, group.per_density, true, found);
      const std::int32_t bits = advance_particle<D>(material, a.dt, p, gradient);
      largest = bits > largest ? bits : largest;
    }
  };
  for_each_batch<D>(block, a.particles, begin, end, kOwn<D>, kOwnChanged<D>, advance);
  const float modulus = __builtin_bit_cast(float, largest) / group.density;
  found.max_modulus = modulus > found.max_modulus ? modulus : found.max_modulus;
}

template <int D, bool kWide>
COPPICE_INLINE void advance_group(const StepArguments<D>& a, const Group<D>& group, std::int64_t begin,
                                  std::int64_t end, const TileTeam<D, kWide>& block, const NodeValue* tile,
                                  const Surroundings& beside, BlockFindings& found) {
  if (begin == end) return;
  with_material(
      group, [&](const auto& material) __attribute__((always_inline)) {
        advance_segment<D, kWide>(a, material, group, begin, end, block, tile, beside, found);
      });
}

// Raises the stored maxima to these where these are larger. The speed is in m/s.
COPPICE_INLINE void merge_maxima(float speed, float modulus, std::uint32_t* speed_bits,
                                 std::uint32_t* modulus_bits) {
  coppice_fetch_max_u32(speed_bits, __builtin_bit_cast(std::uint32_t, speed));
  coppice_fetch_max_u32(modulus_bits, __builtin_bit_cast(std::uint32_t, modulus));
}

template <int D, class Team>
COPPICE_INLINE void report(StepControl<D>* control, const Team& block, const BlockFindings& found,
                           float max_speed) {
  const float speed = std::sqrt(found.max_speed2);
  if (found.drifted) device::relaxed_store(&control->drifted, 1u);
  if (speed > max_speed) device::relaxed_store(&control->too_fast, 1u);
  if (found.max_modulus > max_speed * max_speed) device::relaxed_store(&control->too_stiff, 1u);
  if (found.not_finite) device::relaxed_store(&control->not_finite, 1u);
  if (block.lanes() == 1)
    return merge_maxima(speed, found.max_modulus, &control->max_speed_bits, &control->max_modulus_bits);
  // Among the block's threads first: all blocks together go to two words.
  auto* const maxima = reinterpret_cast<std::uint32_t*>(block.fast);
  if (block.lane() == 0) maxima[0] = maxima[1] = 0;
  block.barrier();
  merge_maxima(speed, found.max_modulus, maxima, maxima + 1);
  block.barrier();
  if (block.lane() != 0) return;
  coppice_fetch_max_u32(&control->max_speed_bits, maxima[0]);
  coppice_fetch_max_u32(&control->max_modulus_bits, maxima[1]);
}

// Gives a segment's particles their motion; with narrow nodes, those that settle do so afterwards.
template <int D, bool kWide>
COPPICE_INLINE void gather_segment(const StepArguments<D>& a, const Group<D>& group, std::int64_t begin,
                                   std::int64_t end, const NodeValue* tile, const TileTeam<D, kWide>& block,
                                   const Surroundings& beside, bool settles, BlockFindings& found) {
  const auto gather = [&](const ParticleArrays& particles, int n) __attribute__((always_inline)) {
    if constexpr (kWide)
      gather_wide_batch<D>(a, group, particles, n, tile, block, beside, settles, found);
    else if (block.lanes() == 1)
      gather_batch<D>(a, particles, block.origin, tile, group.per_density, !settles, found);
    else
      gather_particle<D>(a, particle(particles, 0), block.origin, tile, group.per_density, !settles, found);
  };
  for_each_batch<D>(block, a.particles, begin, end, kTransferred<D>, kTransferred<D>, gather);
}

// `tile` has what the block's particles see of the grid.
template <int D, bool kWide>
COPPICE_INLINE void advance_block(const NodeValue* tile, const TileTeam<D, kWide>& block,
                                  const StepArguments<D>& a) {
  const std::uint32_t* starts = a.starts + block.number * a.n_groups;
  BlockFindings found;
  const Surroundings beside = surroundings<D>(a, block.origin);
  const std::int64_t lane = block.lane(), lanes = block.lanes();
  for (std::uint32_t g = 0; g < a.n_groups; ++g) {
    const Group<D>& group = a.groups[g];
    const std::int64_t begin = starts[g] + lane, end = starts[g + 1];
    if (!moves_before<D, kWide>(block, beside, group)) continue;
    // A GPU has no registers for two ways to move.
    const bool settles = lanes > 1 || beside.count(group);
    gather_segment<D, kWide>(a, group, starts[g], end, tile, block, beside, settles, found);
    if (!kWide && settles)
      for (std::int64_t i = begin; i < end; i += lanes)
        settle_particle<D>(a, group, particle(a, i), block.origin, block.number, beside, found);
    if (beside.inner_walls != 0)
      for (std::int64_t i = begin; i < end; i += lanes)
        stop_at_walls<D>(a, beside.inner_walls, particle(a, i));
  }
  for (std::uint32_t g = 0; g < a.n_groups; ++g)
    advance_group<D, kWide>(a, a.groups[g], starts[g], starts[g + 1], block, tile, beside, found);
  block.barrier();  // the tile is no longer needed
  report<D>(a.control, block, found, a.max_speed);
}

template <int D>
COPPICE_INLINE bool has_particles(const StepArguments<D>& a, std::int64_t block_number) {
  const std::uint32_t* starts = a.starts + block_number * a.n_groups;
  return starts[0] != starts[a.n_groups];
}

template <int D>
COPPICE_INLINE void grid_to_particles(const Read<NodeValue>& grid, const TileTeam<D>& block,
                                      const StepArguments<D>& a) {
  if (a.control->stop || !has_particles<D>(a, block.number)) return;
  auto* const tile = reinterpret_cast<NodeValue*>(block.fast);
  gather_velocities<D>(grid, block, tile);
  block.barrier();
  advance_block<D, false>(tile, block, a);
}

template <int D>
COPPICE_INLINE void grid_to_particles_wide(const Read<NodeValue>& grid, const Read<NodeValue>& grid_before,
                                           const TileTeam<D, true>& block, const StepArguments<D>& a) {
  if (a.control->stop || !has_particles<D>(a, block.number)) return;
  auto* const tile = reinterpret_cast<NodeValue*>(block.fast);
  gather_velocities<D>(grid, block, tile);
  gather_velocities<D>(grid_before, block, tile + kTileNodes<D>);
  block.barrier();
  advance_block<D, true>(tile, block, a);
}

}  // namespace coppice::mpm
