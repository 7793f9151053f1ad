// Particles to grid: each block's particles add momentum and mass to the block's tile.
//
// Device-clean. Who has a block puts its particles in order of their cells, sums in registers what a cell's
// particles add to its nodes, and adds these sums to the tile. On a CPU that is one thread, in a fixed order.
// On a GPU the threads of a thread block share it, and add to the tile in one phase for each node of a
// stencil. Different cells' nodes of one phase differ, so nothing is atomic but the counting of particles.
#pragma once
#include "apps/mpm/scatter_batches.h"

namespace coppice::mpm {

template <int D>
inline constexpr int kStencilNodes = D == 3 ? 27 : 9;
// A particle's stencil begins at one of these nodes of its tile, per axis.
template <int D>
inline constexpr int kTileCells = kTileSize<D> - kStencilWidth + 1;
template <int D>
inline constexpr int kAllTileCells =
    D == 3 ? kTileCells<D>* kTileCells<D>* kTileCells<D> : kTileCells<D>* kTileCells<D>;

// A thread block keeps this in fast memory while it scatters. Wide nodes have two values.
template <int D, bool kWide = false>
struct ScatterMemory {
  static constexpr std::int64_t kMostParticles = 1024;  // that are put in order at a time
  NodeValue tile[(kWide ? 2 : 1) * kTileNodes<D>];
  std::uint32_t counts[kAllTileCells<D>];  // particles of a cell
  std::uint32_t starts[kAllTileCells<D>];  // in `order`
  std::uint32_t filled[kAllTileCells<D>];  // numbers of the cells that have particles, in any order
  std::uint32_t n_filled, n_ordered;
  std::uint32_t places[kMostParticles];  // of each particle: its cell, and its place among the cell's
  std::uint16_t order[kMostParticles];   // particles, by cell
};
template <int D, bool kWide = false>
using ScatterTeam = BlockTeam<D, sizeof(ScatterMemory<D, kWide>)>;
template <int D>
using WideScatterTeam = ScatterTeam<D, true>;

// As a node's four numbers: a vector of D components, and the last one.
template <int D>
COPPICE_INLINE Float4 node_numbers(const SmallVec<float, D>& v, float last) {
  return D == 3 ? Float4{v.v[0], v.v[1], v.v[D - 1], last} : Float4{v.v[0], v.v[1], 0.0f, last};
}

// Calls add(ix, iy, iz, value) for each node of a particle's stencil, (ix, iy, iz) from its base, with what
// it adds there.
template <int D, class Add>
COPPICE_INLINE void scatter_particle(const Given<D>& g, float counted, const TileStencil<D>& s, Add&& add) {
  Float4 affine[3];  // per axis (x, y, z of the tile)
  affine[0] = Float4{0, 0, 0, 0};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) affine[3 - D + k] = node_numbers<D>(column(g.affine, k), 0.0f);
  const Float4 still = node_numbers<D>(g.momentum, counted);
  constexpr int nx = D == 3 ? 3 : 1;
  COPPICE_UNROLL
  for (int ix = 0; ix < nx; ++ix) {
    const Float4 at_x = D == 3 ? still + affine[0] * (static_cast<float>(ix) - s.fx[0]) : still;
    COPPICE_UNROLL
    for (int iy = 0; iy < 3; ++iy) {
      const Float4 at_y = at_x + affine[1] * (static_cast<float>(iy) - s.fx[1]);
      const float w_xy = D == 3 ? s.w[0][ix] * s.w[1][iy] : s.w[1][iy];
      COPPICE_UNROLL
      for (int iz = 0; iz < 3; ++iz) {
        const Float4 at_z = at_y + affine[2] * (static_cast<float>(iz) - s.fx[2]);
        add(ix, iy, iz, (w_xy * s.w[2][iz]) * at_z);
      }
    }
  }
}

template <int D>
COPPICE_INLINE std::uint32_t cell_number(const int (&base)[3]) {
  constexpr int n = kTileCells<D>;
  return static_cast<std::uint32_t>(D == 3 ? (base[0] * n + base[1]) * n + base[2] : base[1] * n + base[2]);
}
template <int D>
COPPICE_INLINE TileNode first_node(std::uint32_t cell) {
  constexpr std::uint32_t n = kTileCells<D>;
  return {static_cast<int>(cell / n / n), static_cast<int>(cell / n % n), static_cast<int>(cell % n)};
}

// Puts particles [begin, begin + n) in order of their cells. Threads meet before and behind it.
template <int D, bool kWide>
COPPICE_INLINE void order_by_cell(const StepArguments<D>& a, std::int64_t begin, int n,
                                  const ScatterTeam<D, kWide>& block, ScatterMemory<D, kWide>& memory) {
  const int lane = static_cast<int>(block.lane()), lanes = static_cast<int>(block.lanes());
  for (int cell = lane; cell < kAllTileCells<D>; cell += lanes) memory.counts[cell] = 0;
  if (lane == 0) memory.n_filled = memory.n_ordered = 0;
  block.barrier();
  for (int p = lane; p < n; p += lanes) {
    const TileStencil<D> s = tile_stencil<D>(particle(a, begin + p), a.inv_dx, block.origin);
    const std::uint32_t cell = cell_number<D>(s.base);
    memory.places[p] = cell | coppice_fetch_add_u32(memory.counts + cell, 1) << 16;
  }
  block.barrier();
  for (int cell = lane; cell < kAllTileCells<D>; cell += lanes) {
    const std::uint32_t count = memory.counts[cell];
    if (count == 0) continue;
    memory.starts[cell] = coppice_fetch_add_u32(&memory.n_ordered, count);
    memory.filled[coppice_fetch_add_u32(&memory.n_filled, 1)] = static_cast<std::uint32_t>(cell);
  }
  block.barrier();
  for (int p = lane; p < n; p += lanes) {
    const std::uint32_t place = memory.places[p];
    memory.order[memory.starts[place & 0xffff] + (place >> 16)] = static_cast<std::uint16_t>(p);
  }
  block.barrier();
}

// Returns what another thread of the warp gives, all of which call it. The number is a parameter since clang
// 19 takes a vector's first element where __builtin_bit_cast is given any element of it.
COPPICE_INLINE float given_by(std::uint32_t warp_lane, float own) {
  return __builtin_bit_cast(float,
                            coppice_shuffle_u32(~0u, __builtin_bit_cast(std::uint32_t, own), warp_lane));
}

// A GPU's way, for particles from `begin` on that were put in order. Two threads, neighbours in a warp, have
// a cell: every other of its particles each.
template <int D, bool kWide>
COPPICE_INLINE void scatter_together(const StepArguments<D>& a, const Scattered& group, std::int64_t begin,
                                     const ScatterTeam<D, kWide>& block,
                                     const ScatterMemory<D, kWide>& memory, NodeValue* tile) {
  const std::uint32_t shares = 2 * memory.n_filled, lane = block.lane(), warp_lane = coppice_warp_lane();
  for (std::uint32_t first = 0; first < shares; first += block.lanes()) {
    const std::uint32_t share = first + lane;
    const bool has_share = share < shares;
    const std::uint32_t cell = has_share ? memory.filled[share / 2] : 0;
    const TileNode base = first_node<D>(cell);
    Float4 sums[kStencilNodes<D>] = {};
    if (has_share) {
      const std::uint32_t end = memory.starts[cell] + memory.counts[cell];
      for (std::uint32_t at = memory.starts[cell] + share % 2; at < end; at += 2) {
        const Particle p = particle(a, begin + memory.order[at]);
        const TileStencil<D> s = tile_stencil_at<D>(p, a.inv_dx, block.origin, base);
        scatter_particle<D>(
            given<D>(a, group, p), group.counted, s,
            [&](int ix, int iy, int iz, Float4 value) { sums[(ix * 3 + iy) * 3 + iz] += value; });
      }
    }
    NodeValue* const to = tile + tile_index<D>(base.at[0], base.at[1], base.at[2]);
    COPPICE_UNROLL
    for (int node = 0; node < kStencilNodes<D>; ++node) {
      Float4 sum = sums[node];
      COPPICE_UNROLL for (int k = 0; k < 4; ++k) sum[k] += given_by(warp_lane ^ 1, sum[k]);
      NodeValue* at = to + tile_index<D>(node / 9, node / 3 % 3, node % 3);
      if (has_share && share % 2 == 0) store(at, load(at) + sum);
      block.barrier();  // before another cell adds to the same node
    }
  }
}

// A GPU's block of threads: the tile in fast memory goes to `out`, that of second values to `before`.
template <int D, bool kWide>
COPPICE_INLINE void scatter_block(NodeValue* out, NodeValue* before, const std::uint32_t* starts,
                                  const ScatterTeam<D, kWide>& block, const StepArguments<D>& a) {
  auto& memory = *reinterpret_cast<ScatterMemory<D, kWide>*>(block.fast);
  const int lane = static_cast<int>(block.lane()), lanes = static_cast<int>(block.lanes());
  constexpr int nodes = kTileNodes<D>;
  for (int n = lane; n < (kWide ? 2 : 1) * nodes; n += lanes) store(memory.tile + n, Float4{0, 0, 0, 0});
  for (std::uint32_t g = 0; g < a.n_groups; ++g) {
    const Scattered group = scattered(a, a.groups[g]);
    const std::int64_t end = starts[g + 1];
    constexpr std::int64_t most = ScatterMemory<D, kWide>::kMostParticles;
    for (std::int64_t begin = starts[g]; begin < end; begin += most) {
      order_by_cell<D, kWide>(a, begin, static_cast<int>(end - begin < most ? end - begin : most), block,
                              memory);
      scatter_together<D, kWide>(a, group, begin, block, memory, memory.tile);
      if constexpr (kWide)
        scatter_together<D, kWide>(a, scattered_before(a.groups[g]), begin, block, memory,
                                   memory.tile + nodes);
    }
  }
  for (int n = lane; n < nodes; n += lanes) {
    store(out + n, load(memory.tile + n));
    if constexpr (kWide) store(before + n, load(memory.tile + nodes + n));
  }
}

template <int D>
COPPICE_INLINE void particles_to_grid(const Write<NodeValue>& tiles, const ScatterTeam<D>& block,
                                      const StepArguments<D>& a) {
  if (a.control->stop) return;
  const std::uint32_t* starts = a.starts + block.number * a.n_groups;
  if (starts[0] == starts[a.n_groups]) return;  // its tile has been zero since activation
  NodeValue* const out = tiles.data(block);
  if (block.lanes() > 1) return scatter_block<D, false>(out, nullptr, starts, block, a);
  __builtin_memset(out, 0, sizeof(NodeValue) * kTileNodes<D>);
  const auto scatter = [&](const Group<D>& group, std::int64_t begin, int n, ScatterBatches<D>& batches)
      __attribute__((always_inline)) {
    offer<D>(a, scattered(a, group), begin, n, block, batches);
    scatter_batches<D>(batches, out);
  };
  scatter_alone<D>(a, starts, block, scatter);
}

// The same with second values of the nodes, where AFLIP or volumes are asked for.
template <int D>
COPPICE_INLINE void particles_to_grid_wide(const Write<NodeValue>& tiles,
                                           const Write<NodeValue>& tiles_before,
                                           const ScatterTeam<D, true>& block, const StepArguments<D>& a) {
  if (a.control->stop) return;
  const std::uint32_t* starts = a.starts + block.number * a.n_groups;
  if (starts[0] == starts[a.n_groups]) return;
  NodeValue *const out = tiles.data(block), *const before = tiles_before.data(block);
  if (block.lanes() > 1) return scatter_block<D, true>(out, before, starts, block, a);
  __builtin_memset(out, 0, sizeof(NodeValue) * kTileNodes<D>);
  __builtin_memset(before, 0, sizeof(NodeValue) * kTileNodes<D>);
  const auto scatter = [&](const Group<D>& group, std::int64_t begin, int n, ScatterBatches<D>& batches)
      __attribute__((always_inline)) {
    offer<D>(a, scattered(a, group), begin, n, block, batches);
    scatter_batches<D>(batches, out);
    if (!(a.flip > 0.0f)) return scatter_shares<D>(batches, group.cell_share, before);
    offer<D>(a, scattered_before(group), begin, n, block, batches);
    scatter_batches<D>(batches, before);
  };
  scatter_alone<D>(a, starts, block, scatter);
}

}  // namespace coppice::mpm
