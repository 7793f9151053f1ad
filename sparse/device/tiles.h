// Tiles around a leaf in a cell loop: copies of values with their halo, and sums that go to the tree once per
// leaf.
//
// Device-clean. A tile lies in a CPU thread's own stack, or in the memory that a GPU's thread block shares;
// then its threads fill it together. Layout and use are the same.
#pragma once
#include "sparse/device/delayed_sums.h"
#include "sparse/device/leaf_tiles.h"

namespace coppice::device {

template <class H>
inline constexpr bool has_reach = false;
template <class H>
requires(H::kRadius > 0) inline constexpr bool has_reach<H> = true;
template <class H>
inline constexpr bool is_scatter = has_reach<H>&& H::kRole == Role::kAccumulate;

// Returns where local cell (x, y, z) lies in a tile of radius R, from local cell (0, 0, 0).
template <class T, int R>
COPPICE_INLINE int tile_index(int x, int y, int z) {
  const LeafShape s = leaf_shape();
  return (x * (s.ey + 2 * R * s.hy) + y) * tile_row(s.ez, R, sizeof(T), coppice_loop.is_shared != 0).pitch +
         z;
}
// Returns where local cell (0, 0, 0) lies in a tile of radius R, from the tile's beginning.
template <class T, int R>
COPPICE_INLINE int tile_origin() {
  const LeafShape s = leaf_shape();
  return tile_index<T, R>(R * s.hx, R * s.hy, 0) +
         tile_row(s.ez, R, sizeof(T), coppice_loop.is_shared != 0).lead;
}

// Finds a cell at local coordinates, at most one leaf away, through the neighbour table; (nx, ny, nz) = 0, 1
// or 2 where it lies before, in or behind the leaf.
struct NearCell {
  unsigned char* container;
  uint32_t index;
  bool there;  // its container is
};
COPPICE_INLINE NearCell near_cell(const LeafContext& context, int x, int y, int z, int nx, int ny, int nz) {
  const LeafShape s = leaf_shape();
  const auto n = static_cast<uint32_t>((nx * 3 + ny) * 3 + nz);
  const uint32_t loop = coppice_loop.node;
  const int lx = x - (nx - 1) * s.ex, ly = y - (ny - 1) * s.ey, lz = z - (nz - 1) * s.ez;
  const auto index = static_cast<uint32_t>((lx * s.ey + ly) * s.ez + lz);
  if (n == 13) return {context.container, index, true};
  return {neighbour_container(context.block, context.neighbours, loop, coppice_loop.tree, n), index,
          context.neighbours[n - (27 - neighbour_stride(loop)) / 2] != kAmbientCell};
}
COPPICE_INLINE NearCell near_cell(const LeafContext& context, int x, int y, int z) {
  const LeafShape s = leaf_shape();
  auto side = [](int at, int cells) { return at < 0 ? 0 : at >= cells ? 2 : 1; };
  return near_cell(context, x, y, z, side(x, s.ex), side(y, s.ey), side(z, s.ez));
}

// Calls visit(x, y, z) for a leaf's cells and its halo of radius R, shared among the threads that have the
// leaf. A star has no edges and corners.
template <int R, bool kStar, class Visit>
COPPICE_INLINE void each_tile_cell(Visit&& visit) {
  const LeafShape s = leaf_shape();
  const int rx = R * s.hx, ry = R * s.hy;
  auto one = [&](int x, int y, int z) {
    const int outside = (x < 0 || x >= s.ex) + (y < 0 || y >= s.ey) + (z < 0 || z >= s.ez);
    if (!kStar || outside <= 1) visit(x, y, z);
  };
  if (coppice_has_private_tiles()) {
    for (int x = -rx; x < s.ex + rx; ++x) {
      for (int y = -ry; y < s.ey + ry; ++y) {
        for (int z = -R; z < s.ez + R; ++z) one(x, y, z);
      }
    }
    return;
  }
  const auto nx = static_cast<uint32_t>(s.ex + 2 * rx), ny = static_cast<uint32_t>(s.ey + 2 * ry),
             nz = static_cast<uint32_t>(s.ez + 2 * R);
  share_out(nx * ny * nz, [&](uint32_t i) {
    one(static_cast<int>(i / nz / ny) - rx, static_cast<int>(i / nz % ny) - ry, static_cast<int>(i % nz) - R);
  });
}

// Does the same for a star on a GPU, with (nx, ny, nz) = 0, 1 or 2 behind the coordinates for what lies
// before, in and behind the leaf: first its own cells, then face by face, so that nothing is asked cell by
// cell.
template <int R, class Visit>
COPPICE_INLINE void each_star_cell(Visit&& visit) {
  const LeafShape s = leaf_shape();
  const auto ex = static_cast<uint32_t>(s.ex), ey = static_cast<uint32_t>(s.ey),
             ez = static_cast<uint32_t>(s.ez);
  // Returns the place on an axis of cell `at` of the 2 R that lie before and behind `cells`.
  const auto outside = [](uint32_t at, uint32_t cells) {
    return static_cast<int>(at < R ? at : at + cells) - R;
  };
  share_out(ex * ey * ez, [&](uint32_t i) {
    visit(static_cast<int>(i / ez / ey), static_cast<int>(i / ez % ey), static_cast<int>(i % ez), 1, 1, 1);
  });
  share_out(2 * R * ex * ey, [&](uint32_t i) {
    const uint32_t at = i / (ex * ey), row = i % (ex * ey);
    visit(static_cast<int>(row / ey), static_cast<int>(row % ey), outside(at, ez), 1, 1, at < R ? 0 : 2);
  });
  if (s.hy) {
    share_out(2 * R * ex * ez, [&](uint32_t i) {
      const uint32_t at = i / (ex * ez), row = i % (ex * ez);
      visit(static_cast<int>(row / ez), outside(at, ey), static_cast<int>(row % ez), 1, at < R ? 0 : 2, 1);
    });
  }
  if (s.hx) {
    share_out(2 * R * ey * ez, [&](uint32_t i) {
      const uint32_t at = i / (ey * ez), row = i % (ey * ez);
      visit(outside(at, ex), static_cast<int>(row / ez), static_cast<int>(row % ez), at < R ? 0 : 2, 1, 1);
    });
  }
}

// Opens a copy of a leaf's values and their halo.
template <class H>
COPPICE_INLINE void open_copy(LeafContext& context, const LoopElement& e, uint32_t binding,
                              unsigned char*& tiles) {
  using T = typename H::Value;
  constexpr int r = H::kRadius;
  const LeafShape s = leaf_shape();
  T* tile = reinterpret_cast<T*>(tiles) + tile_origin<T, r>();
  const FieldBinding& f = coppice_fields[binding];
  if (coppice_has_private_tiles()) {
    fill_tile<T, r, H::kStar>(context.block, e, context.neighbours, f, tile);
  } else {
    const auto copy = [&](int x, int y, int z, const NearCell& from) {
      tile[tile_index<T, r>(x, y, z)] = *value_at<T>(context.block, f, from.container, from.index);
    };
    if constexpr (H::kStar)
      each_star_cell<r>([&](int x, int y, int z, int nx, int ny, int nz) {
        copy(x, y, z, near_cell(context, x, y, z, nx, ny, nz));
      });
    else
      each_tile_cell<r, false>([&](int x, int y, int z) { copy(x, y, z, near_cell(context, x, y, z)); });
  }
  context.read_base[binding] = reinterpret_cast<unsigned char*>(tile);
  tiles += tile_bytes({s.ex, s.ey, s.ez}, s.hx, s.hy, r, sizeof(T), coppice_loop.is_shared != 0);
}

// Opens sums of a leaf and its halo, all zero.
template <class H>
COPPICE_INLINE void open_sums(LeafContext& context, uint32_t binding, unsigned char*& tiles) {
  using T = typename H::Value;
  constexpr int r = H::kRadius;
  const LeafShape s = leaf_shape();
  const uint32_t sums = tile_bytes({s.ex, s.ey, s.ez}, s.hx, s.hy, r, sizeof(T), coppice_loop.is_shared != 0),
                 all = sum_tile_bytes({s.ex, s.ey, s.ez}, s.hx, s.hy, r, sizeof(T),
                                      coppice_loop.is_shared != 0);
  zero_bytes_by({coppice_lane(), coppice_lane_count()}, tiles, all);
  context.read_base[binding] = tiles + tile_origin<T, r>() * static_cast<int>(sizeof(T));
  context.added_base[binding] = tiles + sums + tile_origin<T, r>();
  tiles += all;
}

// Prepares one handle for a leaf: opens the tile of one with a reach.
template <class H>
COPPICE_INLINE void open_tile(LeafContext& context, const LoopElement& e, uint32_t binding,
                              unsigned char*& tiles) {
  if constexpr (has_reach<H>) {
    if ((coppice_loop.tiled >> binding & 1) == 0) return;
    if constexpr (is_scatter<H>)
      open_sums<H>(context, binding, tiles);
    else
      open_copy<H>(context, e, binding, tiles);
  }
}

// Reports a sum that found no cell.
COPPICE_INLINE void miss_sum(const LaunchBlock* block, uint32_t binding, Coord c) {
  coppice_fetch_add_u64(&block->context->missed_writes, 1);
  const bool inside = in_domain(coppice_nodes[coppice_fields[binding].node], c);
  raise_at(block, inside ? DeviceStatus::kInactiveCell : DeviceStatus::kOutsideDomain, binding, c);
}

// Adds to a cell anywhere, by a walk.
template <class T>
COPPICE_INLINE void add_at(const LaunchBlock* block, uint32_t binding, Coord c, const T& value,
                           DelayedSums* delayed = nullptr) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const CellRef p = find(node, tree_state(block, f.tree), c);
  if (is_checked_temporary(binding) && is_active(node, p) && !has_value_at(block, binding, c)) return;
  if (is_active(node, p))
    add_now_or_later(f, delayed, value_at<T>(block, f, p.container, p.index), value);
  else
    miss_sum(block, binding, c);
}

// Adds a leaf's sums to the tree: other leaves' go to the same cells, so atomically.
template <class H>
COPPICE_INLINE void close_sums(const LeafContext& context, uint32_t binding) {
  if constexpr (is_scatter<H>) {
    if ((coppice_loop.tiled >> binding & 1) == 0) return;
    using T = typename H::Value;
    const FieldBinding& f = coppice_fields[binding];
    const NodeLayout& node = coppice_nodes[coppice_loop.node];
    const bool masked = node.level[node.depth - 1].kind == NodeKind::kBitmasked;
    const T* sums = reinterpret_cast<const T*>(context.read_base[binding]);
    each_tile_cell<H::kRadius, H::kStar>([&](int x, int y, int z) {
      const int at = tile_index<T, H::kRadius>(x, y, z);
      if (context.added_base[binding][at] == 0) return;
      const NearCell to = near_cell(context, x, y, z);
      if (to.there && (!masked || mask_bit(to.container, to.index)))
        atomic_add_value(value_at<T>(context.block, f, to.container, to.index), sums[at]);
      else
        miss_sum(context.block, binding,
                 {plus(context.origin[0], x), plus(context.origin[1], y), plus(context.origin[2], z)});
    });
  }
}

}  // namespace coppice::device

namespace coppice {

// A neighbour's value lies in the tile; where the tiles do not fit it is fetched from the
// neighbouring leaf, and where there is no neighbour table or the field lives in another node that
// has the same cells, by a walk.
template <class T, class Reach>
template <int D>
COPPICE_INLINE T Read<T, Reach>::load(const Cell<D>& cell, int dx, int dy, int dz) const {
  using namespace device;
  const FieldBinding& f = this->binding();
  const LeafContext& context = *cell.context;
  const int x = cell.i + dx, y = cell.j + dy, z = cell.k + dz;
  auto walk = [&] {
    const CellRef p =
        find(this->layout(), tree_state(context.block, f.tree),
             {plus(context.origin[0], x), plus(context.origin[1], y), plus(context.origin[2], z)});
    return *value_at<T>(context.block, f, p.container, p.index);
  };
  if (f.node != coppice_loop.node) {
    if (lacks_own_cell(context.block, this->id.field, false)) return T{};
    return walk();
  }
  if constexpr (kRadius > 0) {
    const uint32_t binding = this->id.field;
    if ((coppice_loop.tiled >> binding & 1) != 0)
      return reinterpret_cast<const T*>(context.read_base[binding])[tile_index<T, kRadius>(x, y, z)];
    if (dx != 0 || dy != 0 || dz != 0) {
      if ((coppice_loop.tabled >> binding & 1) == 0) return walk();
      const NearCell from = near_cell(context, x, y, z);
      return *value_at<T>(context.block, f, from.container, from.index);
    }
  }
  return *value_at<T>(context.block, f, context.container, cell.index);
}

template <class T, class Reach>
template <class From, int D>
COPPICE_INLINE void Accumulate<T, Reach>::add(const From& from, const int32_t (&coord)[D],
                                              const T& value) const {
  static_assert(device::is_sum<T>(), COPPICE_WHAT_IS_ADDED);
  if (device::makes_room() || !this->may(from, effect::kAdds, device::kAnyReach)) return;
  device::add_at<T>(device::launch_of(from), this->id.field, this->coord_of(from, coord), value,
                    device::sums_of(from));
}

template <class T, class Reach>
requires(Reach::kRadius > 0) template <int D>
COPPICE_INLINE
    void Accumulate<T, Reach>::add(const Cell<D>& cell, const int32_t (&offset)[D], const T& value) const {
  static_assert(device::is_sum<T>(), COPPICE_WHAT_IS_ADDED);
  if (device::makes_room() || !this->may(cell, effect::kAdds, kRadius)) return;
  using namespace device;
  const Coord d = offset_coord(offset);
  const LeafContext& context = *cell.context;
  const uint32_t binding = this->id.field;
  const bool reached = reaches(kRadius, kStar, d);
  if (debug_checks() && !reached) {
    raise_at(context.block, DeviceStatus::kOutOfReach, binding, cell.coord(), d);
    return;
  }
  if (this->binding().node != coppice_loop.node && lacks_own_cell(context.block, binding, true)) return;
  // An addition that goes too far is still made to the cell where it belongs.
  if ((coppice_loop.tiled >> binding & 1) == 0 || !reached) {
    add_at<T>(context.block, binding, plus(cell.coord(), d), value);
    return;
  }
  if (is_checked_temporary(binding) && !has_value_at(context.block, binding, plus(cell.coord(), d))) return;
  const int at = tile_index<T, kRadius>(cell.i + d.x, cell.j + d.y, cell.k + d.z);
  T* sum = reinterpret_cast<T*>(context.read_base[binding]) + at;
  unsigned char* const added = context.added_base[binding] + at;
  if (coppice_has_private_tiles()) {
    add_value_alone(sum, value);
    *added = 1;
  } else {
    // Several threads of the block may come to one cell: relaxed, since what they write is the same, and it
    // is read behind the block's barrier. A plain store would race.
    atomic_add_value(sum, value);
    relaxed_store(added, static_cast<unsigned char>(1));
  }
}

}  // namespace coppice
