// Particles as a CPU takes them: so many at a time, all numbers of a kind in one register for what particles
// do alone, and all numbers of a particle in one for what it does with its nodes.
//
// Device-clean.
#pragma once
#include "apps/mpm/node_rows.h"

namespace coppice::mpm {

inline constexpr int kBatch = 16;

// Sixteen numbers of each of the batch's particles: number k of particle p is at v[k][p], or, after
// transpose(), at v[p][k].
struct alignas(64) BatchNumbers {
  float v[kBatch][kBatch];
  COPPICE_INLINE NodeRow& row(int i) { return *reinterpret_cast<NodeRow*>(v[i]); }
};

COPPICE_INLINE void transpose(BatchNumbers& numbers) {
  NodeRow r[kBatch];
  COPPICE_UNROLL for (int i = 0; i < kBatch; ++i) r[i] = numbers.row(i);
  // 2 x 2 numbers, then 2 x 2 of these, within each four columns ...
  COPPICE_UNROLL
  for (int i = 0; i < kBatch; i += 2) {
    const NodeRow a = r[i], b = r[i + 1];
    r[i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    r[i + 1] = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  NodeRow t[kBatch];
  COPPICE_UNROLL
  for (int i = 0; i < kBatch; i += 4) {
    COPPICE_UNROLL
    for (int h = 0; h < 2; ++h) {
      const NodeRow a = r[i + h], b = r[i + 2 + h];
      t[i + 2 * h] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      t[i + 2 * h + 1] =
          __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  }
  // ... and then 4 x 4 of four columns: row 4 i + j of the result is the columns i of these.
  COPPICE_UNROLL
  for (int j = 0; j < 4; ++j) {
    const NodeRow ab_even = even_nodes(t[j], t[4 + j]), cd_even = even_nodes(t[8 + j], t[12 + j]);
    const NodeRow ab_odd = odd_nodes(t[j], t[4 + j]), cd_odd = odd_nodes(t[8 + j], t[12 + j]);
    numbers.row(j) = even_nodes(ab_even, cd_even);
    numbers.row(4 + j) = even_nodes(ab_odd, cd_odd);
    numbers.row(8 + j) = odd_nodes(ab_even, cd_even);
    numbers.row(12 + j) = odd_nodes(ab_odd, cd_odd);
  }
}

// Attributes from the first on.
struct AttributeRange {
  int first, count;
};
// These go to nodes, or come from them.
template <int D>
inline constexpr AttributeRange kTransferred{Attribute<D>::kPosition, Attribute<D>::kDeformation};
// A particle's own changes need the first, and change the second.
template <int D>
inline constexpr AttributeRange kOwn{Attribute<D>::kAffine, Attribute<D>::kGroup - Attribute<D>::kAffine};
template <int D>
inline constexpr AttributeRange kOwnChanged{Attribute<D>::kStress,
                                            Attribute<D>::kGroup - Attribute<D>::kStress};

// Copies n floats, fewer than a batch, in pieces: LLVM calls memcpy for a loop.
COPPICE_INLINE void copy_few(const float* from, float* to, int n) {
  const auto copy = [&](int piece) __attribute__((always_inline)) {
    if ((n & piece) == 0) return;
    __builtin_memcpy(to, from, sizeof(float) * piece);
    from += piece, to += piece;
  };
  copy(8), copy(4), copy(2), copy(1);
}

// The last particles of a range, fewer than a batch, are made one here: copies of the very last fill it.
template <int D>
struct alignas(64) LastBatch {
  float values[Attribute<D>::kCount * kBatch];

  COPPICE_INLINE void take(const ParticleArrays& from, int n, AttributeRange range) {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int k = range.first; k < range.first + range.count; ++k) {
      const float* const source = from.base + k * from.stride;
      *reinterpret_cast<NodeRow*>(values + k * kBatch) = source[n - 1];
      copy_few(source, values + k * kBatch, n);
    }
  }
  COPPICE_INLINE void give(const ParticleArrays& to, int n, AttributeRange range) const {
#pragma clang loop vectorize(disable) unroll(disable)
    for (int k = range.first; k < range.first + range.count; ++k)
      copy_few(values + k * kBatch, to.base + k * to.stride, n);
  }
};

// Particles so far ahead are fetched from memory: a processor does not foresee as many arrays as there are
// attributes. They follow in memory where they are of the next block, too.
inline constexpr int kPrefetched = 4 * kBatch;
COPPICE_INLINE void prefetch(const float* particle, std::int64_t stride, AttributeRange range) {
#pragma clang loop unroll(disable)
  for (int k = range.first; k < range.first + range.count; ++k) __builtin_prefetch(particle + k * stride);
}

// Calls visit(particles, n) for each batch of particles [begin, end), which are the first n of these arrays,
// or with several threads to a block for the single particles of each. It may read the attributes `taken`,
// and change those `given`, which are among them. Those that fill the last batch up are copies: what they do
// must do no harm.
template <int D, class Team, class Visit>
COPPICE_INLINE void for_each_batch(const Team& block, const ParticleArrays& all, std::int64_t begin,
                                   std::int64_t end, AttributeRange taken, AttributeRange given,
                                   Visit&& visit) {
  const bool alone = block.lanes() == 1;
  LastBatch<D> last;
  for (std::int64_t i = begin + block.lane(); i < end; i += alone ? kBatch : block.lanes()) {
    const ParticleArrays here{all.base + i, all.stride};
    const int n = !alone ? 1 : end - i < kBatch ? static_cast<int>(end - i) : kBatch;
    const bool is_whole = !alone || n == kBatch;
    if (alone) prefetch(all.base + i + kPrefetched, all.stride, taken);
    if (!is_whole) last.take(here, n, taken);
    visit(is_whole ? here : ParticleArrays{last.values, kBatch}, n);
    if (!is_whole) last.give(here, n, given);
  }
}

// A particle's stencil: the numbers of a row are its weights, and where the stencil begins is apart.
struct StencilNumbers {
  static constexpr int kX = 0, kXAway = 3;  // weights by x, and times the nodes' distance in cells
  static constexpr int kY = 6, kYAway = 9;  // by y
  static constexpr int kZ = 12;             // by z
  static constexpr int kBeforeZ = 15;       // cells that the particle is from its first node in z
};

// Finds the stencils of a batch: their numbers, and in `bases` where in the tile their first nodes are.
template <int D>
COPPICE_INLINE void find_stencils(const StepArguments<D>& a, const ParticleArrays& batch,
                                  const std::int32_t* first, BatchNumbers& stencils, std::int32_t* bases) {
  using N = StencilNumbers;
#pragma clang loop vectorize(assume_safety) interleave_count(1)
  for (int p = 0; p < kBatch; ++p) {
    const TileStencil<D> s = tile_stencil<D>(particle(batch, p), a.inv_dx, first);
    COPPICE_UNROLL
    for (int i = 0; i < kStencilWidth; ++i) {
      stencils.v[N::kX + i][p] = D == 3 ? s.w[0][i] : 0.0f;
      stencils.v[N::kXAway + i][p] = D == 3 ? s.w[0][i] * (static_cast<float>(i) - s.fx[0]) : 0.0f;
      stencils.v[N::kY + i][p] = s.w[1][i];
      stencils.v[N::kYAway + i][p] = s.w[1][i] * (static_cast<float>(i) - s.fx[1]);
      stencils.v[N::kZ + i][p] = s.w[2][i];
    }
    stencils.v[N::kBeforeZ][p] = s.fx[2];
    bases[p] = tile_index<D>(s.base[0], s.base[1], s.base[2]);
  }
  transpose(stencils);
}

// The weight by x and y of a stencil's row (row_index()).
template <int D>
COPPICE_INLINE float row_weight(const float* stencil, int row) {
  using N = StencilNumbers;
  return D == 3 ? stencil[N::kX + row / 3] * stencil[N::kY + row % 3] : stencil[N::kY + row];
}
COPPICE_INLINE NodeRow weights_in_z(const float* stencil) {
  return of_each_node(*reinterpret_cast<const Float4*>(stencil + StencilNumbers::kZ));
}

// Returns what a particle takes from its nodes, from `first` on (particle_tile.h): the sum, and the three
// along the axes. Calls visit(row, w) for each row with its first node and its weight by x and y.
template <int D, class Visit>
COPPICE_INLINE NodeRow take_from_rows(const float* stencil, const NodeValue* first, Visit&& visit) {
  using N = StencilNumbers;
  NodeRow sum = 0.0f, along_x = 0.0f, along_y = 0.0f;
  constexpr int nx = D == 3 ? 3 : 1;
  COPPICE_UNROLL
  for (int ix = 0; ix < nx; ++ix) {
    NodeRow in_y = 0.0f, in_y_away = 0.0f;
    COPPICE_UNROLL
    for (int iy = 0; iy < 3; ++iy) {
      const NodeValue* const nodes = first + row_index<D>(ix * 3 + iy);
      const NodeRow row = load_row(nodes);
      in_y += row * stencil[N::kY + iy];
      in_y_away += row * stencil[N::kYAway + iy];
      visit(nodes, row_weight<D>(stencil, ix * 3 + iy));
    }
    if constexpr (D == 2) {
      sum = in_y, along_y = in_y_away;
    } else {
      sum += in_y * stencil[N::kX + ix];
      along_y += in_y_away * stencil[N::kX + ix];
      along_x += in_y * stencil[N::kXAway + ix];
    }
  }
  const NodeRow w = weights_in_z(stencil);
  const NodeRow value = sum * w;
  return sums_of_nodes(value, along_x * w, along_y * w, value * (places_in_row() - stencil[N::kBeforeZ]));
}

// Adds to the sums of a stencil's rows what a particle gives their nodes. Of `offered` are the first four
// what a node at the stencil's first would get but for its weight, and the others what comes to that per
// cell, by the axes.
template <int D>
COPPICE_INLINE void add_to_rows(const float* stencil, const float* offered,
                                NodeRow (&sums)[kStencilRows<D>]) {
  const auto* const parts = reinterpret_cast<const Float4*>(offered);
  const NodeRow w = weights_in_z(stencil);
  NodeRow at_x = (for_each_node(parts[0]) + for_each_node(parts[3]) * places_in_row()) * w;
  const NodeRow per_x = D == 3 ? for_each_node(parts[1]) * w : 0.0f, per_y = for_each_node(parts[2]) * w;
  constexpr int nx = D == 3 ? 3 : 1;
  COPPICE_UNROLL
  for (int ix = 0; ix < nx; ++ix) {
    NodeRow at_y = at_x;
    COPPICE_UNROLL
    for (int iy = 0; iy < 3; ++iy) {
      sums[ix * 3 + iy] += at_y * row_weight<D>(stencil, ix * 3 + iy);
      at_y += per_y;
    }
    at_x += per_x;
  }
}

}  // namespace coppice::mpm
