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

// The loops' item: a block whose threads share a tile in fast memory, or two of wide nodes.
template <int D, bool kWide = false>
using TileTeam = BlockTeam<D, (kWide ? 2 : 1) * sizeof(NodeValue) * kTileNodes<D>>;
template <int D>
using WideTileTeam = TileTeam<D, true>;

// One particle's attributes. On a GPU its stride is a fresh value: a thread would else keep the addresses of
// all attributes, 70 registers, through a loop over few particles.
struct Particle {
  float* base;
  std::uint32_t stride;
  COPPICE_INLINE float& operator[](int attribute) const {
    return base[static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(attribute)];
  }
};
template <int D>
COPPICE_INLINE Particle particle(const StepArguments<D>& a, std::int64_t i) {
  return {a.particles.base + i, coppice_fresh_u32(static_cast<std::uint32_t>(a.particles.stride))};
}

// One particle's stencil in its block's tile. The base is clamped, so that a broken position (not a number,
// or flung out of the margin in its last step) reads and writes inside the tile; the step's checks report it.
template <int D>
struct TileStencil {
  int base[3];
  float fx[3];
  float w[3][kStencilWidth];
};

// A node of a tile, (x, y, z).
struct TileNode {
  int at[3];
};
// A particle's stencil from a node that is known to be its base.
template <int D>
COPPICE_INLINE TileStencil<D> tile_stencil_at(const Particle& p, float inv_dx, const std::int32_t* first,
                                              const TileNode& base) {
  TileStencil<D> s;
  s.base[0] = 0, s.fx[0] = 0;
  COPPICE_UNROLL
  for (int a = 0; a < D; ++a) {
    const int axis = 3 - D + a;
    s.base[axis] = base.at[axis];
    s.fx[axis] = p[Attribute<D>::kPosition + a] * inv_dx - static_cast<float>(first[axis] + base.at[axis]);
    bspline_weights(s.fx[axis], s.w[axis]);
  }
  return s;
}

template <int D>
COPPICE_INLINE TileStencil<D> tile_stencil(const Particle& p, float inv_dx, const std::int32_t* first) {
  TileStencil<D> s;
  s.base[0] = 0, s.fx[0] = 0;
  COPPICE_UNROLL
  for (int a = 0; a < D; ++a) {
    const int axis = 3 - D + a;
    const float x = p[Attribute<D>::kPosition + a] * inv_dx - static_cast<float>(first[axis]);
    const float base = clamp_to(bspline_base(x), 0.0f, static_cast<float>(kTileSize<D> - kStencilWidth));
    s.base[axis] = static_cast<int>(base);
    s.fx[axis] = x - base;
    bspline_weights(s.fx[axis], s.w[axis]);
  }
  return s;
}

// Column c of the affine matrix, and of the stress, as (x, y, z, 0) with the axes of a 2-D tree in (x, y).
template <int D>
COPPICE_INLINE Float4 affine_column(const Particle& p, int c) {
  constexpr int m = Attribute<D>::kAffine;
  if constexpr (D == 3)
    return Float4{p[m + c], p[m + 3 + c], p[m + 6 + c], 0.0f};
  else
    return Float4{p[m + c], p[m + 2 + c], 0.0f, 0.0f};
}
template <int D>
COPPICE_INLINE Float4 stress_column(const Particle& p, int c) {
  constexpr int s = Attribute<D>::kStress;
  if constexpr (D == 3) {
    if (c == 0) return Float4{p[s], p[s + 1], p[s + 2], 0.0f};
    if (c == 1) return Float4{p[s + 1], p[s + 3], p[s + 4], 0.0f};
    return Float4{p[s + 2], p[s + 4], p[s + 5], 0.0f};
  } else {
    if (c == 0) return Float4{p[s], p[s + 1], 0.0f, 0.0f};
    return Float4{p[s + 1], p[s + 2], 0.0f, 0.0f};
  }
}

}  // namespace coppice::mpm
