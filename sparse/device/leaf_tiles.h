// Private storage of a leaf in a cell loop: halo tiles that stencils read, buffers that blended writes go to.
//
// Device-clean. Used by the cell loop (drivers.h) before and after a leaf's rows are computed.
#pragma once
#include "sparse/device/arguments.h"

namespace coppice::device {

struct LeafShape {
  int32_t ex, ey, ez;  // cells per dimension
  int32_t hx, hy;      // 1 where the dimension exists and takes a halo
};

COPPICE_INLINE LeafShape leaf_shape() {
  const NodeLayout& node = coppice_nodes[coppice_loop.node];
  const LevelLayout& leaf = node.level[node.depth - 1];
  return {static_cast<int32_t>(leaf.extent[0]), static_cast<int32_t>(leaf.extent[1]),
          static_cast<int32_t>(leaf.extent[2]), node.dims > 2, node.dims > 1};
}

// Bytes of a tile with radius r around a leaf.
template <class T>
COPPICE_INLINE uint32_t tile_bytes(const LeafShape& s, int r) {
  return static_cast<uint32_t>((s.ex + 2 * r * s.hx) * (s.ey + 2 * r * s.hy) * (s.ez + 2 * r)) * sizeof(T);
}

template <class T>
COPPICE_INLINE void copy_values(T* to, const unsigned char* from, uint32_t stride, int n) {
  if (stride == sizeof(T)) {
    __builtin_memcpy(to, from, sizeof(T) * n);
  } else {
    for (int i = 0; i < n; ++i) to[i] = *reinterpret_cast<const T*>(from + static_cast<uint64_t>(i) * stride);
  }
}

// Copies a leaf's values and a halo of radius R into a tile; a star leaves the tile's edges and corners alone.
template <class T, int R, bool kStar>
COPPICE_INLINE void fill_tile(const LaunchBlock* block, const Element& e, const uint32_t* neighbours,
                              const FieldBinding& f, T* tile) {
  const LeafShape s = leaf_shape();
  for (int x = -R * s.hx; x < s.ex + R * s.hx; ++x) {
    const int nx = x < 0 ? 0 : x >= s.ex ? 2 : 1, lx = x - (nx - 1) * s.ex;
    for (int y = -R * s.hy; y < s.ey + R * s.hy; ++y) {
      const int ny = y < 0 ? 0 : y >= s.ey ? 2 : 1, ly = y - (ny - 1) * s.ey;
      if (kStar && nx != 1 && ny != 1) continue;
      T* row = tile + ((x + R * s.hx) * (s.ey + 2 * R * s.hy) + y + R * s.hy) * (s.ez + 2 * R) + R;
      const uint64_t first = f.offset + static_cast<uint64_t>((lx * s.ey + ly) * s.ez) * f.stride;
      auto container = [&](int nz) {
        const uint32_t n = (nx * 3 + ny) * 3 + nz;
        return n == 13 ? e.container
                       : neighbour_container(block, neighbours, coppice_loop.node, coppice_loop.tree, n);
      };
      copy_values(row, container(1) + first, f.stride, s.ez);
      if (kStar && (nx != 1 || ny != 1)) continue;
      copy_values(row - R, container(0) + first + static_cast<uint64_t>(s.ez - R) * f.stride, f.stride, R);
      copy_values(row + s.ez, container(2) + first, f.stride, R);
    }
  }
}

// Per-leaf preparation of one handle: a tile for a read with reach, a private buffer for a blended write.
template <class H>
COPPICE_INLINE void prepare_handle(LeafContext& context, const Element& e, uint32_t binding,
                                   unsigned char*& tiles, unsigned char*& blend_next) {
  const FieldBinding& f = coppice_fields[binding];
  using T = typename H::Value;
  if constexpr (H::kRole == Role::kRead) {
    if constexpr (H::kRadius > 0) {
      if ((coppice_loop.tiled >> binding & 1) == 0 || !coppice_has_private_tiles()) return;
      const LeafShape s = leaf_shape();
      T* tile = reinterpret_cast<T*>(tiles);
      fill_tile<T, H::kRadius, H::kStar>(context.block, e, context.neighbours, f, tile);
      constexpr int r = H::kRadius;
      context.read_base[binding] = reinterpret_cast<unsigned char*>(
          tile + (r * s.hx * (s.ey + 2 * r * s.hy) + r * s.hy) * (s.ez + 2 * r) + r);
      tiles += align_up(tile_bytes<T>(s, r), 64);
    }
  } else if constexpr (H::kRole == Role::kWrite) {
    if (!blends()) return;
    // Filled with what is there, since a kernel need not write every cell.
    const LeafShape s = leaf_shape();
    const int n = s.ex * s.ey * s.ez;
    copy_values(reinterpret_cast<T*>(blend_next), e.container + f.offset, f.stride, n);
    context.write_base[binding] = blend_next;
    blend_next += align_up(static_cast<size_t>(n) * sizeof(T), 64);
  }
}

// Copies a private buffer's active cells into the leaf: computed everywhere, kept where the mask says so.
template <class H>
COPPICE_INLINE void blend_handle(const LeafContext& context, uint32_t binding) {
  if constexpr (H::kRole == Role::kWrite) {
    using T = typename H::Value;
    const LeafShape s = leaf_shape();
    const FieldBinding& f = coppice_fields[binding];
    const T* from = reinterpret_cast<const T*>(context.write_base[binding]);
    const uint64_t* mask = reinterpret_cast<const uint64_t*>(context.container);
    const int n = s.ex * s.ey * s.ez;
    for (int word = 0; word * 64 < n; ++word) {
      const uint64_t bits = mask[word];
      if (bits == 0) continue;
      const int end = n - word * 64 < 64 ? n - word * 64 : 64;
      for (int row = 0; row < end; row += 8) {
        const uint32_t active = static_cast<uint32_t>(bits >> row) & 255u;
        if (active == 0) continue;
        const int lanes = end - row < 8 ? end - row : 8;
#pragma clang loop vectorize(assume_safety) vectorize_width(8) unroll(disable)
        for (int lane = 0; lane < lanes; ++lane) {
          T* to = reinterpret_cast<T*>(context.container + f.offset +
                                       static_cast<uint64_t>(word * 64 + row + lane) * f.stride);
          const T computed = from[word * 64 + row + lane], before = *to;
          *to = (active & (1u << lane)) ? computed : before;
        }
      }
    }
  }
}

}  // namespace coppice::device
