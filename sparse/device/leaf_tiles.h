// Storage of a leaf in a cell loop on a CPU: how halo tiles are filled, and rows that blended writes go to.
//
// Device-clean. Used by the cell loop (loops.h) before and after a leaf's rows are computed. tiles.h has
// what tiles of all devices share.
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

// The cells of a container that a loop over a box has: local coordinates [x0, x1) and so on. Where there is
// no box they are constants, and all cells.
struct LeafBox {
  int32_t x0, x1, y0, y1, z0, z1;
};
COPPICE_INLINE bool has_box() { return coppice_loop.box != 0; }
COPPICE_INLINE LeafBox leaf_box(const LaunchBlock* block, const LoopElement& e) {
  const LeafShape s = leaf_shape();
  if (!has_box()) return {0, s.ex, 0, s.ey, 0, s.ez};
  LoopBox box;
  __builtin_memcpy(&box, block->arguments + coppice_loop.box - 1, sizeof box);
  const auto local = [&](int32_t at, int d, int32_t cells) {
    const int64_t c = int64_t{at} - e.origin[d];
    return static_cast<int32_t>(c < 0 ? 0 : c > cells ? cells : c);
  };
  return {local(box.low[0], 0, s.ex),  local(box.high[0], 0, s.ex), local(box.low[1], 1, s.ey),
          local(box.high[1], 1, s.ey), local(box.low[2], 2, s.ez),  local(box.high[2], 2, s.ez)};
}
// Return the later beginning, and the earlier end, of a piece's and the box's cells.
COPPICE_INLINE int32_t box_begin(int32_t at, int32_t box) { return has_box() && box > at ? box : at; }
COPPICE_INLINE int32_t box_end(int32_t at, int32_t box) { return has_box() && box < at ? box : at; }

// An item of a cell loop has this part of a container: rows from (x0, y0) to before (x1 - 1, y1), of each
// the cells [z0, z1), as far as they lie in the box. Their linear indices are in [first, end). For a
// container that is one item all but the box are constants.
struct LeafPiece {
  int32_t x0, x1, y0, y1, z0, z1;
  uint32_t first, end;
  LeafBox box;
};
COPPICE_INLINE bool is_cut() { return coppice_loop.pieces > 1; }
COPPICE_INLINE LeafPiece leaf_piece(uint32_t number, const LeafBox& box) {
  const LeafShape s = leaf_shape();
  if (!is_cut()) return {0, s.ex, 0, s.ey, 0, s.ez, 0, static_cast<uint32_t>(s.ex * s.ey * s.ez), box};
  const uint32_t ey = static_cast<uint32_t>(s.ey), ez = static_cast<uint32_t>(s.ez);
  const uint32_t rows = static_cast<uint32_t>(s.ex) * ey, cells = coppice_loop.piece_row_cells;
  const uint32_t parts = (ez - 1) / cells + 1;  // of a row
  const uint32_t row = number / parts * coppice_loop.piece_rows, z = number % parts * cells;
  const uint32_t last_row = (rows - row < coppice_loop.piece_rows ? rows : row + coppice_loop.piece_rows) - 1;
  const uint32_t end_z = ez - z < cells ? ez : z + cells;
  return {static_cast<int32_t>(row / ey),
          static_cast<int32_t>(last_row / ey + 1),
          static_cast<int32_t>(row % ey),
          static_cast<int32_t>(last_row % ey + 1),
          static_cast<int32_t>(z),
          static_cast<int32_t>(end_z),
          row * ez + z,
          last_row * ez + end_z,
          box};
}
// Returns whether the box has no cell of the piece's planes and columns.
COPPICE_INLINE bool is_outside_box(const LeafPiece& p) {
  return has_box() && (box_begin(p.x0, p.box.x0) >= box_end(p.x1, p.box.x1) || p.box.y0 >= p.box.y1 ||
                       box_begin(p.z0, p.box.z0) >= box_end(p.z1, p.box.z1));
}

template <class T>
COPPICE_INLINE void copy_values(T* to, const unsigned char* from, uint32_t stride, int n) {
  if (stride == sizeof(T)) {
    __builtin_memcpy(to, from, sizeof(T) * n);
  } else {
    for (int i = 0; i < n; ++i) to[i] = *reinterpret_cast<const T*>(from + static_cast<uint64_t>(i) * stride);
  }
}

// Says where a row's three sources are: the containers before, of and after it along z, at the field's
// values.
struct RowSources {
  const unsigned char *before, *own, *after;
};
COPPICE_INLINE RowSources row_sources(const LaunchBlock* block, const LoopElement& e,
                                      const uint32_t* neighbours, const FieldBinding& f, int nx, int ny) {
  auto values = [&](int nz) {
    const uint32_t n = static_cast<uint32_t>((nx * 3 + ny) * 3 + nz);
    return f.offset + (n == 13
                           ? e.container
                           : neighbour_container(block, neighbours, coppice_loop.node, coppice_loop.tree, n));
  };
  return {values(0), values(1), values(2)};
}

// Copies the part of a tile that lies in one column of neighbours: nx, ny = 0, 1 or 2 before, in or behind
// the leaf.
template <class T, int R, bool kStar, int nx, int ny>
COPPICE_INLINE void fill_column(const LaunchBlock* block, const LoopElement& e, const uint32_t* neighbours,
                                const FieldBinding& f, T* tile) {
  const LeafShape s = leaf_shape();
  if ((nx != 1 && !s.hx) || (ny != 1 && !s.hy) || (kStar && nx != 1 && ny != 1)) return;
  const int pitch_z = tile_row(s.ez, R, sizeof(T), coppice_loop.is_shared != 0).pitch,
            pitch_y = (s.ey + 2 * R * s.hy) * pitch_z;
  const RowSources from = row_sources(block, e, neighbours, f, nx, ny);
  const int x0 = nx == 0 ? s.ex - R : 0, x1 = nx == 2 ? R : s.ex;
  const int y0 = ny == 0 ? s.ey - R : 0, y1 = ny == 2 ? R : s.ey;
  for (int x = x0; x < x1; ++x) {
    for (int y = y0; y < y1; ++y) {
      T* row = tile + (x + (nx - 1) * s.ex) * pitch_y + (y + (ny - 1) * s.ey) * pitch_z;
      const uint64_t first = static_cast<uint64_t>((x * s.ey + y) * s.ez) * f.stride;
      copy_values(row, from.own + first, f.stride, s.ez);
      if (kStar && (nx != 1 || ny != 1)) continue;
      copy_values(row - R, from.before + first + static_cast<uint64_t>(s.ez - R) * f.stride, f.stride, R);
      copy_values(row + s.ez, from.after + first, f.stride, R);
    }
  }
}

// Copies a leaf's values and a halo of radius R. A star leaves the tile's edges and corners alone.
template <class T, int R, bool kStar>
COPPICE_INLINE void fill_tile(const LaunchBlock* block, const LoopElement& e, const uint32_t* neighbours,
                              const FieldBinding& f, T* tile) {
  auto column = [&]<int nx, int ny>() { fill_column<T, R, kStar, nx, ny>(block, e, neighbours, f, tile); };
  column.template operator()<0, 0>(), column.template operator()<0, 1>(), column.template operator()<0, 2>();
  column.template operator()<1, 0>(), column.template operator()<1, 1>(), column.template operator()<1, 2>();
  column.template operator()<2, 0>(), column.template operator()<2, 1>(), column.template operator()<2, 2>();
}

// Returns mask bits [first, first + n) of a bitmasked container, n <= 8.
COPPICE_INLINE uint32_t mask_bits(const unsigned char* container, uint32_t first, int n) {
  const uint64_t* mask = reinterpret_cast<const uint64_t*>(container) + first / 64;
  uint64_t bits = mask[0] >> (first & 63);
  if ((first & 63) + static_cast<uint32_t>(n) > 64) bits |= mask[1] << (64 - (first & 63));
  return static_cast<uint32_t>(bits) & ((1u << n) - 1);
}
// Returns which bits of a mask's word belong to cells that a piece has.
COPPICE_INLINE uint64_t word_mask(const LeafPiece& p, uint32_t word) {
  uint64_t mask = ~uint64_t{0};
  if (word == p.first / 64) mask <<= p.first % 64;
  if (word == p.end / 64) mask &= (uint64_t{1} << p.end % 64) - 1;
  return mask;
}
// Returns whether all cells of a piece are active.
COPPICE_INLINE bool is_full(const unsigned char* container, const LeafPiece& p) {
  const auto* mask = reinterpret_cast<const uint64_t*>(container);
  uint64_t inactive = 0;
  for (uint32_t word = p.first / 64; word * 64 < p.end; ++word) inactive |= ~mask[word] & word_mask(p, word);
  return inactive == 0;
}
COPPICE_INLINE bool row_is_empty(const unsigned char* container, uint32_t first, int n) {
  uint32_t any = 0;
  for (int z = 0; z < n; z += 8)
    any |= mask_bits(container, first + static_cast<uint32_t>(z), n - z < 8 ? n - z : 8);
  return any == 0;
}

// Writes to a leaf, or piece of one, whose cells are all active: it needs no private rows.
template <class H>
COPPICE_INLINE void open_whole(LeafContext& context, uint32_t binding) {
  if constexpr (H::kRole == Role::kWrite)
    context.write_base[binding] = context.container + coppice_fields[binding].offset;
}

// Opens a blended write's private row, filled with what is there, since a kernel need not write every
// cell. If it does, LLVM sees that the copy is dead.
template <class H>
COPPICE_INLINE void open_row(LeafContext& context, uint32_t binding, uint32_t first, int n,
                             unsigned char*& rows) {
  if constexpr (H::kRole == Role::kWrite) {
    using T = typename H::Value;
    const FieldBinding& f = coppice_fields[binding];
    copy_values(reinterpret_cast<T*>(rows),
                context.container + f.offset + static_cast<uint64_t>(first) * f.stride, f.stride, n);
    context.write_base[binding] = rows - first * sizeof(T);
    rows += align_up(static_cast<size_t>(n) * sizeof(T), 64);
  }
}

// Stores a private row's active cells: computed everywhere, kept where the mask says so.
template <class H>
COPPICE_INLINE void close_row(const LeafContext& context, uint32_t binding, uint32_t first, int n) {
  if constexpr (H::kRole == Role::kWrite) {
    using T = typename H::Value;
    const FieldBinding& f = coppice_fields[binding];
    const T* from = reinterpret_cast<const T*>(context.write_base[binding]) + first;
    for (int z = 0; z < n; z += 8) {
      const int lanes = n - z < 8 ? n - z : 8;
      const uint32_t active = mask_bits(context.container, first + static_cast<uint32_t>(z), lanes);
#pragma clang loop vectorize(assume_safety) vectorize_width(8) unroll(disable)
      for (int lane = 0; lane < lanes; ++lane) {
        T* to =
            reinterpret_cast<T*>(context.container + f.offset +
                                 static_cast<uint64_t>(first + static_cast<uint32_t>(z + lane)) * f.stride);
        const T computed = from[z + lane], before = *to;
        *to = (active & (1u << lane)) ? computed : before;
      }
    }
  }
}

}  // namespace coppice::device
