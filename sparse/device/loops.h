// The loops around a kernel: over the cells of a leaf with halo tiles and masks, over blocks, over the
// elements of lists; range_loops.h has those over a range.
//
// Device-clean, instantiated in a kernel file by COPPICE_KERNEL. An item of a cell loop is one leaf
// container, or a piece of a large one: its halo is gathered into tiles, then whole rows are computed (on a
// GPU: cells), vectorised, and blended by the mask; the roles guarantee that cells do not disturb each other,
// which is what the loop metadata asserts.
#pragma once
#include "sparse/device/default_values.h"
#include "sparse/device/range_loops.h"

namespace coppice::device {

template <auto kKernel, class... Args>
struct CellLoop {
  using LoopItem = typename LoopItemOf<Args...>::Type;
  using Pack = std::tuple<Args...>;

  template <class Visit>
  static COPPICE_INLINE void each_handle(Visit&& visit) {
    each_handle_of<Args...>(visit);
  }

  // Sums of a row's cells go to the same places of a tile.
  template <class T>
  static constexpr bool scatters() {
    bool found = false;
    if constexpr (is_handle_argument<T>) {
      uint32_t binding = 0;
      const T value = bound_handles<T>(binding);
      for_each_handle(value, [&]<class H>(const H&) { found = found || is_scatter<H>; });
    }
    return found;
  }
  static constexpr bool kScatters = (false || ... || scatters<Args>());

  // Returns whether all cells of a piece are active and their results can be stored in place, row by row:
  // the values lie side by side, as a dense leaf's.
  static COPPICE_INLINE bool opens_whole(const unsigned char* container, const LeafPiece& p) {
    bool is_contiguous = true;
    each_handle([&]<class H>(std::type_identity<H>, uint32_t b) {
      const bool is_written = H::kRole == Role::kWrite;
      is_contiguous &= !is_written || coppice_fields[b].stride == sizeof(typename H::Value);
    });
    return is_contiguous && is_full(container, p);
  }

  COPPICE_ONE_CELL static COPPICE_INLINE void call(const Pack& pack, const LoopItem& cell) {
    call_kernel<kKernel, Args...>(pack, cell, std::index_sequence_for<Args...>{});
  }

  static COPPICE_INLINE void row(const Pack& pack, const LeafContext& context, int x, int y, int z0, int z1) {
    const LeafShape s = leaf_shape();
    const uint32_t first = static_cast<uint32_t>((x * s.ey + y) * s.ez);
    if constexpr (kScatters) {
      for (int z = z0; z < z1; ++z) {
        call(pack, LoopItem{&context, x, y, z, first + static_cast<uint32_t>(z)});
      }
    } else {
#pragma clang loop vectorize(assume_safety) vectorize_width(8) unroll(disable)
      for (int z = z0; z < z1; ++z) {
        call(pack, LoopItem{&context, x, y, z, first + static_cast<uint32_t>(z)});
      }
    }
  }

  // Runs every cell of every row; where it is blended, active ones are kept. `is_blended` is a constant
  // where it is called.
  static COPPICE_INLINE void rows(const Pack& pack, LeafContext& context, const LeafPiece& p,
                                  bool is_blended) {
    const LeafShape s = leaf_shape();
    if (coppice_has_private_tiles()) {
      alignas(64) unsigned char row_storage[kRowBytes];
      const LeafBox& b = p.box;
      const int z0 = box_begin(p.z0, b.z0), z1 = box_end(p.z1, b.z1), cells = z1 - z0;
      for (int x = box_begin(p.x0, b.x0); x < box_end(p.x1, b.x1); ++x) {
        const int y0 = box_begin(x == p.x0 ? p.y0 : 0, b.y0), y1 = box_end(x + 1 == p.x1 ? p.y1 : s.ey, b.y1);
        for (int y = y0; y < y1; ++y) {
          const uint32_t first = static_cast<uint32_t>((x * s.ey + y) * s.ez + z0);
          unsigned char* rows = row_storage;
          if (is_blended) {
            if (row_is_empty(context.container, first, cells)) continue;
            each_handle([&]<class H>(std::type_identity<H>, uint32_t b) {
              open_row<H>(context, b, first, cells, rows);
            });
          }
          row(pack, context, x, y, z0, z1);
          if (!is_blended) continue;
          each_handle(
              [&]<class H>(std::type_identity<H>, uint32_t b) { close_row<H>(context, b, first, cells); });
        }
      }
    } else {
      share_out(p.end - p.first, [&](uint32_t i) { one_cell(pack, context, p.box, p.first + i); });
    }
  }

  static COPPICE_INLINE void one_cell(const Pack& pack, const LeafContext& context, const LeafBox& b,
                                      uint32_t i) {
    const LeafShape s = leaf_shape();
    const int z = static_cast<int>(i % s.ez), y = static_cast<int>(i / s.ez % s.ey),
              x = static_cast<int>(i / s.ez / s.ey);
    if (has_box() && (x < b.x0 || x >= b.x1 || y < b.y0 || y >= b.y1 || z < b.z0 || z >= b.z1)) return;
    call(pack, LoopItem{&context, x, y, z, i});
  }

  // Runs the active cells of a bitmasked leaf, or the slots of a pointer node, one after another.
  static COPPICE_INLINE void active_cells(const Pack& pack, const LeafContext& context, NodeKind kind,
                                          const LeafPiece& p) {
    if (kind == NodeKind::kBitmasked && coppice_lane_count() == 1) {
      for (uint32_t word = p.first / 64; word * 64 < p.end; ++word) {
        uint64_t bits = relaxed_load(reinterpret_cast<const uint64_t*>(context.container) + word);
        if (is_cut()) bits &= word_mask(p, word);
        for (; bits != 0; bits &= bits - 1) one_cell(pack, context, p.box, word * 64 + __builtin_ctzll(bits));
      }
      return;
    }
    for (uint32_t i = p.first + coppice_lane(); i < p.end; i += coppice_lane_count()) {
      const bool active = kind == NodeKind::kBitmasked ? mask_bit(context.container, i)
                                                       : slot_cell(context.container, i) != kAmbientCell;
      if (active) one_cell(pack, context, p.box, i);
    }
  }

  static COPPICE_INLINE void leaf(const LaunchBlock* block, const Pack& pack, const LoopElement& e,
                                  const uint32_t* neighbours, const LeafPiece& piece) {
    if (is_outside_box(piece)) return;
    alignas(64) unsigned char tile_storage[kTileBytes];
    unsigned char* tiles =
        coppice_has_private_tiles() ? tile_storage : static_cast<unsigned char*>(coppice_shared_memory());
    const NodeLayout& node = coppice_nodes[coppice_loop.node];
    const NodeKind kind = node.level[node.depth - 1].kind;
    LeafContext context;
    context.block = block, context.container = e.container, context.neighbours = neighbours;
    context.origin[0] = e.origin[0], context.origin[1] = e.origin[1], context.origin[2] = e.origin[2];
    each_handle([&]<class H>(std::type_identity<H>, uint32_t b) { open_tile<H>(context, e, b, tiles); });
    if (coppice_loop.tiled != 0) coppice_block_barrier();
    if (blends() && opens_whole(context.container, piece)) {
      each_handle([&]<class H>(std::type_identity<H>, uint32_t b) { open_whole<H>(context, b); });
      rows(pack, context, piece, false);
    } else if (kind == NodeKind::kDense || blends()) {
      rows(pack, context, piece, blends());
    } else {
      active_cells(pack, context, kind, piece);
    }
    if (coppice_loop.tiled == 0) return;
    coppice_block_barrier();  // before tiles are read back, or those of the next leaf are filled
    if constexpr (kScatters) {
      each_handle([&]<class H>(std::type_identity<H>, uint32_t b) { close_sums<H>(context, b); });
      coppice_block_barrier();
    }
  }

  static COPPICE_INLINE void run(const LaunchBlock* block, uint64_t begin, uint64_t end) {
    ArgumentReader reader{block};
    const Pack pack{reader.next<Args>()...};
    const auto* elements = static_cast<const LoopElement*>(block->elements);
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t e = is_cut() ? i / coppice_loop.pieces : i;
      leaf(block, pack, elements[e],
           block->neighbours == nullptr ? nullptr
                                        : block->neighbours + neighbour_stride(coppice_loop.node) * e,
           leaf_piece(is_cut() ? static_cast<uint32_t>(i % coppice_loop.pieces) : 0,
                      leaf_box(block, elements[e])));
    }
  }
};

template <class LoopItem>
COPPICE_INLINE LoopItem block_of(const LaunchBlock* block, uint64_t i) {
  const LoopElement& e = static_cast<const LoopElement*>(block->elements)[i];
  return {
      block,
      e.container,
      block->neighbours == nullptr ? nullptr : block->neighbours + neighbour_stride(coppice_loop.node) * i,
      {e.origin[0], e.origin[1], e.origin[2]},
      static_cast<uint64_t>(block->loop_begin) + i,
      e.cell};
}

template <auto kKernel, class... Args>
COPPICE_INLINE void run_blocks(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  using LoopItem = typename LoopItemOf<Args...>::Type;
  ArgumentReader reader{block};
  const std::tuple<Args...> pack{reader.next<Args>()...};
  for (uint64_t i = begin + coppice_lane(); i < end; i += coppice_lane_count())
    call_kernel<kKernel, Args...>(pack, block_of<LoopItem>(block, i), std::index_sequence_for<Args...>{});
}

// The lanes of a block share an item, and its fast memory.
template <auto kKernel, class... Args>
COPPICE_INLINE void run_block_teams(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  using LoopItem = typename LoopItemOf<Args...>::Type;
  ArgumentReader reader{block};
  const std::tuple<Args...> pack{reader.next<Args>()...};
  alignas(64) unsigned char storage[LoopItem::kFastBytes + 1];
  unsigned char* const fast =
      coppice_has_private_tiles() ? storage : static_cast<unsigned char*>(coppice_shared_memory());
  for (uint64_t i = begin; i < end; ++i) {
    const LoopItem place{block_of<Block<LoopItem::kDims>>(block, i), fast};
    call_kernel<kKernel, Args...>(pack, place, std::index_sequence_for<Args...>{});
    if (LoopItem::kFastBytes > 0) coppice_block_barrier();  // before the next one uses it
  }
}

// An item is a chunk of a list: one thread runs its elements, vectorised; on a GPU
// the lanes of a block share them.
template <auto kKernel, class... Args>
COPPICE_INLINE void run_entries(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  using LoopItem = typename LoopItemOf<Args...>::Type;
  ArgumentReader reader{block};
  const std::tuple<Args...> pack{reader.next<Args>()...};
  const NodeLayout& node = coppice_nodes[coppice_loop.node];
  const uint32_t chunk_cells = node.level[node.depth - 1].chunk_cells;
  const auto* elements = static_cast<const LoopElement*>(block->elements);
  for (uint64_t i = begin; i < end; ++i) {
    const LoopElement& e = elements[i];
    const auto* chunk = reinterpret_cast<const CellHeader*>(e.container);
    const uint32_t first = chunk->ordinal * chunk_cells, count = chunk->count;
#pragma clang loop vectorize(assume_safety) vectorize_width(8) unroll(disable)
    for (uint32_t slot = coppice_lane(); slot < count; slot += coppice_lane_count()) {
      const LoopItem place{block, e.container, {e.origin[0], e.origin[1], e.origin[2]}, slot, first + slot};
      call_kernel<kKernel, Args...>(pack, place, std::index_sequence_for<Args...>{});
    }
  }
}

template <class T>
inline constexpr bool is_entry = false;
template <int D>
inline constexpr bool is_entry<Entry<D>> = true;
template <class T>
inline constexpr bool is_item = std::is_same_v<T, Item>;
template <int D>
inline constexpr bool is_item<GridItem<D>> = true;

template <auto kKernel, class Signature>
struct Runner;
template <auto kKernel, class... Args>
struct Runner<kKernel, void (*)(Args...)> {
  static constexpr int kPlaces = (0 + ... + (is_place_argument<std::remove_cvref_t<Args>> ? 1 : 0));
  static_assert((is_kernel_parameter<Args> && ...),
                "a kernel takes values and constant references; results go to a field or a pointer");
  static_assert(kPlaces == 1,
                "a kernel takes exactly one Cell, Block, BlockTeam, Entry, Item, GridItem or Team");
  static_assert(total_handles<std::remove_cvref_t<Args>...>() <= kMaxBindings,
                "a kernel has at most 24 field handles");
  static_assert(packed_bytes<std::remove_cvref_t<Args>...>() <= kLaunchArgumentBytes,
                "a kernel's plain arguments take at most 384 bytes; put the rest into a buffer");
  static_assert((note_default_values<std::remove_cvref_t<Args>>() & ... & true));
  static constexpr uint32_t kArgumentLayout = argument_layout<std::remove_cvref_t<Args>...>();

  static COPPICE_INLINE void run(const LaunchBlock* block, uint64_t begin, uint64_t end) {
    using LoopItem = typename LoopItemOf<std::remove_cvref_t<Args>...>::Type;
    if constexpr (is_item<LoopItem>)
      run_items<kKernel, LoopItem, std::remove_cvref_t<Args>...>(block, begin, end);
    else if constexpr (std::is_same_v<LoopItem, Team>)
      run_teams<kKernel, std::remove_cvref_t<Args>...>(block, begin, end);
    else if constexpr (is_entry<LoopItem>)
      run_entries<kKernel, std::remove_cvref_t<Args>...>(block, begin, end);
    else if constexpr (requires { LoopItem::kFastBytes; })
      run_block_teams<kKernel, std::remove_cvref_t<Args>...>(block, begin, end);
    else if constexpr (requires(LoopItem p) { p.launch; })
      run_blocks<kKernel, std::remove_cvref_t<Args>...>(block, begin, end);
    else
      CellLoop<kKernel, std::remove_cvref_t<Args>...>::run(block, begin, end);
  }
};

}  // namespace coppice::device
