// How loops over cells compute their leaves (see tile_choice.h; sparse/device/tiles.h has the tiles).
#include "sparse/tile_choice.h"

#include <array>
#include <span>

#include "sparse/binding.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::NodeKind;

namespace {

// Returns whether rows are computed as a whole, and what they hold of inactive cells is dropped: their
// private storage must suffice.
bool blends_rows(const LaunchRequest& r, const TreeNode& n, const Binding& b, bool checks) {
  // Two handles of one field would not see each other's private rows.
  bool blend = n.kind == NodeKind::kBitmasked && !r.active_only && !checks && !b.names_a_field_twice;
  uint64_t row_bytes = 0;
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) {
    if (h.role == Role::kWrite)
      row_bytes += device::align_up(uint64_t{n.extent[2]} * h.value_bytes, 64);
    else if (h.role != Role::kRead)
      blend = false;
  }
  return blend && row_bytes > 0 && row_bytes <= device::kRowBytes;
}

// Gives a handle a tile, or the neighbour table where there is no storage left for one.
void choose_tile(const TreeLayout& tree, const std::array<uint32_t, 3>& e, const HandleUse& h, uint32_t bit,
                 Binding& b) {
  for (int d = 3 - static_cast<int>(tree.dims()); d < 3; ++d)
    if (e[d] < static_cast<uint32_t>(h.radius)) return;
  const int32_t extent[3] = {static_cast<int32_t>(e[0]), static_cast<int32_t>(e[1]),
                             static_cast<int32_t>(e[2])};
  const auto bytes_of = h.role == Role::kRead ? device::tile_bytes : device::sum_tile_bytes;
  const uint32_t bytes =
      bytes_of(extent, tree.dims() > 2, tree.dims() > 1, h.radius, h.value_bytes, b.loop.is_shared != 0);
  const bool tiled = b.shared_bytes + bytes <= device::kTileBytes;
  if (!tiled && h.role != Role::kRead) return;
  if (tiled) b.shared_bytes += bytes;
  (tiled ? b.loop.tiled : b.loop.tabled) |= bit;
  b.needs_neighbours = true;
}

}  // namespace

void choose_tiles(const LaunchRequest& r, Binding& b, bool checks) {
  const TreeLayout& tree = r.loop.tree->layout();
  const TreeNode& n = tree.node(r.loop.node);
  // A pointer node's values are in its cells, not in rows of its container.
  const bool table = tree.has_neighbour_table(r.loop.node) && n.kind != NodeKind::kPointer;
  for (uint32_t i = 0; i < r.num_handles && table; ++i) {
    const HandleUse& h = r.handles[i];
    const bool is_on_node = tree_of(h.id) == r.loop.tree.get() && h.id.node == r.loop.node;
    if (h.radius > 0 && is_on_node) choose_tile(tree, n.extent, h, 1u << i, b);
  }
  b.loop.blend = blends_rows(r, n, b, checks);
  // A tile is filled once for all of its leaf.
  b.loop.pieces = 1;
  if (b.loop.tiled == 0 && n.num_cells > device::kPieceCells)
    device::cut_into_pieces(b.loop, b.nodes[b.loop.node].level[b.nodes[b.loop.node].depth - 1].extent);
}

}  // namespace coppice
