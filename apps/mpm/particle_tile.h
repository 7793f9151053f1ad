// The transfers between particles and grid share this: four-lane node values, a particle's stencil in its
// block's tile, and columns of matrix attributes.
//
// Device-clean.
#pragma once
#include "apps/mpm/bspline.h"
#include "apps/mpm/solver_types.h"
#include "coppice/kernel.h"

namespace coppice::mpm {

typedef float Float4 __attribute__((ext_vector_type(4)));

COPPICE_INLINE Float4 load(const NodeValue* p) { return *reinterpret_cast<const Float4*>(p); }
COPPICE_INLINE void store(NodeValue* p, Float4 v) { *reinterpret_cast<Float4*>(p) = v; }

template <int D>
COPPICE_INLINE int tile_index(int i, int j, int k) {
  constexpr int t = kTileSize<D>;
  return D == 3 ? (i * t + j) * t + k : j * t + k;
}
template <int D>
inline constexpr int kTileNodes =
    D == 3 ? kTileSize<D>* kTileSize<D>* kTileSize<D> : kTileSize<D>* kTileSize<D>;
template <int D>
inline constexpr int kBlockNodes =
    D == 3 ? kBlockSize<D>* kBlockSize<D>* kBlockSize<D> : kBlockSize<D>* kBlockSize<D>;

// The loops' item: a block whose threads share a tile in fast memory.
template <int D>
using TileTeam = BlockTeam<D, sizeof(NodeValue) * kTileNodes<D>>;

// One particle's stencil in its block's tile. The base is clamped, so that a broken position (not a number,
// or flung out of the margin in its last step) reads and writes inside the tile; the step's checks report it.
template <int D>
struct TileStencil {
  int base[3];
  float fx[3];
  float w[3][kStencilWidth];
};

template <int D>
COPPICE_INLINE TileStencil<D> tile_stencil(const float* const* position, std::int64_t i, float inv_dx,
                                           const std::int32_t* first) {
  TileStencil<D> s;
  s.base[0] = 0, s.fx[0] = 0;
  COPPICE_UNROLL
  for (int a = 0; a < D; ++a) {
    const int axis = 3 - D + a;
    const float x = position[a][i] * inv_dx - static_cast<float>(first[axis]);
    const float base = clamp_to(bspline_base(x), 0.0f, static_cast<float>(kTileSize<D> - kStencilWidth));
    s.base[axis] = static_cast<int>(base);
    s.fx[axis] = x - base;
    bspline_weights(s.fx[axis], s.w[axis]);
  }
  return s;
}

template <int D>
COPPICE_INLINE float* attribute(const StepArguments<D>& a, int number) {
  return a.particles.base + number * a.particles.stride;
}

// Column c of a D x D matrix attribute, as (x, y, z, 0) with the axes of a 2-D tree in (x, y).
template <int D>
COPPICE_INLINE Float4 matrix_column(const float* const* m, std::int64_t i, int c) {
  if constexpr (D == 3)
    return Float4{m[c][i], m[3 + c][i], m[6 + c][i], 0.0f};
  else
    return Float4{m[c][i], m[2 + c][i], 0.0f, 0.0f};
}
template <int D>
COPPICE_INLINE Float4 stress_column(const float* const* s, std::int64_t i, int c) {
  if constexpr (D == 3) {
    if (c == 0) return Float4{s[0][i], s[1][i], s[2][i], 0.0f};
    if (c == 1) return Float4{s[1][i], s[3][i], s[4][i], 0.0f};
    return Float4{s[2][i], s[4][i], s[5][i], 0.0f};
  } else {
    if (c == 0) return Float4{s[0][i], s[1][i], 0.0f, 0.0f};
    return Float4{s[1][i], s[2][i], 0.0f, 0.0f};
  }
}

}  // namespace coppice::mpm
