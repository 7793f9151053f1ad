// Particles to grid as a CPU's thread does it: cell by cell, by batches of particles and rows of nodes.
//
// Device-clean.
#pragma once
#include "apps/mpm/given_momentum.h"
#include "apps/mpm/particle_batch.h"

namespace coppice::mpm {

// A CPU's thread keeps this while it scatters the particles of a block, so many of a group at a time.
template <int D>
struct ScatterBatches {
  static constexpr int kMostBatches = 16, kMost = kMostBatches * kBatch;
  BatchNumbers stencils[kMostBatches];
  BatchNumbers offered[kMostBatches];  // see offer()
  std::int32_t bases[kMost];           // the first nodes of the particles' stencils, which stand for cells
  std::int32_t places[kMost];          // of each particle among those of its cell
  std::uint32_t order[kMost];          // particles, by cell
  std::int32_t filled[kMost];          // cells that have particles, in the order in which they got some
  std::int32_t n_filled;
  std::int32_t counts[kTileNodes<D>];  // particles of a cell
  std::int32_t starts[kTileNodes<D>];  // in `order`
};

// Finds the stencils of a group's particles [begin, begin + n), and puts the particles in order of their
// cells.
template <int D, class Team>
COPPICE_INLINE void order_batches(const StepArguments<D>& a, std::int64_t begin, int n, const Team& block,
                                  ScatterBatches<D>& b) {
  int batch = 0;
  const auto find = [&](const ParticleArrays& particles, int) __attribute__((always_inline)) {
    find_stencils<D>(a, particles, block.origin, b.stencils[batch], b.bases + batch * kBatch);
    ++batch;
  };
  for_each_batch<D>(block, a.particles, begin, begin + n, {Attribute<D>::kPosition, D}, {}, find);
  std::int32_t n_filled = 0, n_ordered = 0;
  for (int p = 0; p < n; ++p) {
    const std::int32_t cell = b.bases[p], place = b.counts[cell];
    b.filled[n_filled] = cell;
    n_filled += place == 0 ? 1 : 0;
    b.places[p] = place;
    b.counts[cell] = place + 1;
  }
  for (int f = 0; f < n_filled; ++f) {
    b.starts[b.filled[f]] = n_ordered;
    n_ordered += b.counts[b.filled[f]];
  }
  for (int p = 0; p < n; ++p) b.order[b.starts[b.bases[p]] + b.places[p]] = static_cast<std::uint32_t>(p);
  b.n_filled = n_filled;
}

// Computes what a batch's particles offer to their nodes (add_to_rows()).
template <int D>
COPPICE_INLINE void offer_batch(const StepArguments<D>& a, const Scattered& group,
                                const ParticleArrays& particles, const std::int32_t* first,
                                BatchNumbers& offered) {
#pragma clang loop vectorize(assume_safety) interleave_count(1)
  for (int i = 0; i < kBatch; ++i) {
    const Particle p = particle(particles, i);
    const TileStencil<D> s = tile_stencil<D>(p, a.inv_dx, first);
    const Given<D> g = given<D>(a, group, p);
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k) {
      float corner = g.momentum.v[k];
      COPPICE_UNROLL
      for (int j = 0; j < D; ++j) {
        const int axis = 3 - D + j;
        corner -= g.affine(k, j) * s.fx[axis];
        offered.v[4 + 4 * axis + k][i] = g.affine(k, j);
      }
      offered.v[k][i] = corner;
      // Beyond a vector's components.
      if constexpr (D == 2) offered.v[4 + 4 * (k + 1) + 2][i] = 0.0f;
      offered.v[4 + 4 * (3 - D + k) + 3][i] = 0.0f;
    }
    if constexpr (D == 2) offered.v[2][i] = 0.0f;
    offered.v[3][i] = group.counted;
  }
  transpose(offered);
}
// The same of all that are ordered.
template <int D, class Team>
COPPICE_INLINE void offer(const StepArguments<D>& a, const Scattered& group, std::int64_t begin, int n,
                          const Team& block, ScatterBatches<D>& b) {
  int batch = 0;
  const auto offer_next = [&](const ParticleArrays& particles, int) __attribute__((always_inline)) {
    offer_batch<D>(a, group, particles, block.origin, b.offered[batch++]);
  };
  for_each_batch<D>(block, a.particles, begin, begin + n, kTransferred<D>, {}, offer_next);
}

// Adds what ordered particles offer to their nodes.
template <int D>
COPPICE_INLINE void scatter_batches(const ScatterBatches<D>& b, NodeValue* tile) {
  for (std::int32_t f = 0; f < b.n_filled; ++f) {
    const std::int32_t cell = b.filled[f], start = b.starts[cell], end = start + b.counts[cell];
    NodeRow sums[kStencilRows<D>] = {};
    for (std::int32_t at = start; at < end; ++at) {
      const std::uint32_t p = b.order[at];
      add_to_rows<D>(b.stencils[p / kBatch].v[p % kBatch], b.offered[p / kBatch].v[p % kBatch], sums);
    }
    COPPICE_UNROLL
    for (int row = 0; row < kStencilRows<D>; ++row) add_to_row(tile + cell + row_index<D>(row), sums[row]);
  }
}

// The same of second values without momentum, which only AFLIP needs.
template <int D>
COPPICE_INLINE void scatter_shares(const ScatterBatches<D>& b, float share, NodeValue* tile) {
  for (std::int32_t f = 0; f < b.n_filled; ++f) {
    const std::int32_t cell = b.filled[f], start = b.starts[cell], end = start + b.counts[cell];
    Float4 sums[kStencilRows<D>] = {};
    for (std::int32_t at = start; at < end; ++at) {
      const float* const s = b.stencils[b.order[at] / kBatch].v[b.order[at] % kBatch];
      const Float4 in_z = *reinterpret_cast<const Float4*>(s + StencilNumbers::kZ) * share;
      COPPICE_UNROLL
      for (int row = 0; row < kStencilRows<D>; ++row) sums[row] += in_z * row_weight<D>(s, row);
    }
    COPPICE_UNROLL
    for (int row = 0; row < kStencilRows<D>; ++row) {
      COPPICE_UNROLL
      for (int iz = 0; iz < 3; ++iz) tile[cell + row_index<D>(row) + iz].v[3] += sums[row][iz];
    }
  }
}

// Calls scatter(group, begin, n, batches) for so many of a group's particles as are ordered at a time.
template <int D, class Team, class Scatter>
COPPICE_INLINE void scatter_alone(const StepArguments<D>& a, const std::uint32_t* starts, const Team& block,
                                  Scatter&& scatter) {
  ScatterBatches<D> batches;
  __builtin_memset(batches.counts, 0, sizeof batches.counts);
  constexpr std::int64_t most = ScatterBatches<D>::kMost;
  for (std::uint32_t g = 0; g < a.n_groups; ++g) {
    const std::int64_t end = starts[g + 1];
    for (std::int64_t begin = starts[g]; begin < end; begin += most) {
      const int n = static_cast<int>(end - begin < most ? end - begin : most);
      order_batches<D>(a, begin, n, block, batches);
      scatter(a.groups[g], begin, n, batches);
      for (std::int32_t f = 0; f < batches.n_filled; ++f) batches.counts[batches.filled[f]] = 0;
    }
  }
}

}  // namespace coppice::mpm
