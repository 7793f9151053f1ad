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
COPPICE_INLINE Particle particle(const ParticleArrays& particles, std::int64_t i) {
  return {particles.base + i, coppice_fresh_u32(static_cast<std::uint32_t>(particles.stride))};
}
template <int D>
COPPICE_INLINE Particle particle(const StepArguments<D>& a, std::int64_t i) {
  return particle(a.particles, i);
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

// A particle takes from the nodes of its stencil the sum of w v, and along the axes (x, y, z of the
// tile) that of w v (x_node - x_p), in cells.
struct Taken {
  Float4 value;
  Float4 along[3];
};
// A GPU's way to take it, with few registers: node by node. Calls visit(node, w v) for each.
template <int D, class Visit>
COPPICE_INLINE Taken take_from_nodes(const TileStencil<D>& s, const NodeValue* tile, Visit&& visit) {
  Taken sum{};
  constexpr int nx = D == 3 ? 3 : 1;
  COPPICE_UNROLL
  for (int ix = 0; ix < nx; ++ix) {
    COPPICE_UNROLL
    for (int iy = 0; iy < 3; ++iy) {
      const float w_xy = D == 3 ? s.w[0][ix] * s.w[1][iy] : s.w[1][iy];
      const NodeValue* row = tile + tile_index<D>(s.base[0] + ix, s.base[1] + iy, s.base[2]);
      Float4 in_row{0, 0, 0, 0};
      COPPICE_UNROLL
      for (int iz = 0; iz < 3; ++iz) {
        const Float4 part = (w_xy * s.w[2][iz]) * load(row + iz);
        visit(row + iz, part);
        in_row += part;
        sum.along[2] += part * (static_cast<float>(iz) - s.fx[2]);
      }
      sum.value += in_row;
      sum.along[1] += in_row * (static_cast<float>(iy) - s.fx[1]);
      if constexpr (D == 3) sum.along[0] += in_row * (static_cast<float>(ix) - s.fx[0]);
    }
  }
  return sum;
}

// Entry (row, column) of the affine matrix and of the stress.
template <int D>
COPPICE_INLINE float affine_at(const Particle& p, int row, int column) {
  return p[Attribute<D>::kAffine + row * D + column];
}
template <int D>
COPPICE_INLINE float stress_at(const Particle& p, int row, int column) {
  const int low = row < column ? row : column, high = row < column ? column : row;
  return p[Attribute<D>::kStress + low * D - low * (low + 1) / 2 + high];
}

}  // namespace coppice::mpm
