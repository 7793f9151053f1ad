// How loops over cells compute their leaves (see tile_choice.h; sparse/device/tiles.h has the tiles).
#include "sparse/tile_choice.h"

#include <array>

#include "sparse/binding.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::NodeKind;

void choose_tiles(const LaunchRequest& r, Binding& b, bool checks) {
  TreeStorage& tree = *r.loop.tree;
  const NodeDescription& n = tree.node(r.loop.node);
  const std::array<uint32_t, 3>& e = n.extent;
  // A pointer node's values are in its cells, not in rows of its container.
  const bool table = tree.has_neighbour_table(r.loop.node) && n.kind != NodeKind::kPointer;
  uint64_t row_bytes = 0;
  // Two handles of one field would not see each other's private rows.
  bool blend = n.kind == NodeKind::kBitmasked && !r.active_only && !checks && !b.names_a_field_twice;
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const HandleUse& h = r.handles[i];
    if (h.role == Role::kWrite)
      row_bytes += device::align_up(uint64_t{e[2]} * h.value_bytes, 64);
    else if (h.role != Role::kRead)
      blend = false;
    if (h.radius == 0 || tree_of(h.id) != &tree || h.id.node != r.loop.node || !table) continue;
    bool fits = true;
    for (int d = 3 - static_cast<int>(tree.dims()); d < 3; ++d)
      fits = fits && e[d] >= static_cast<uint32_t>(h.radius);
    const int32_t extent[3] = {static_cast<int32_t>(e[0]), static_cast<int32_t>(e[1]),
                               static_cast<int32_t>(e[2])};
    if (!fits) continue;
    const auto bytes_of = h.role == Role::kRead ? device::tile_bytes : device::sum_tile_bytes;
    const uint32_t bytes = bytes_of(extent, tree.dims() > 2, tree.dims() > 1, h.radius, h.value_bytes);
    const bool tiled = b.shared_bytes + bytes <= device::kTileBytes;
    if (!tiled && h.role != Role::kRead) continue;
    if (tiled) b.shared_bytes += bytes;
    (tiled ? b.loop.tiled : b.loop.tabled) |= 1u << i;
    b.needs_neighbours = true;
  }
  b.loop.blend = blend && row_bytes > 0 && row_bytes <= device::kRowBytes;
  // A tile is filled once for all of its leaf.
  b.loop.pieces = 1;
  if (b.loop.tiled == 0 && n.num_cells > device::kPieceCells)
    device::cut_into_pieces(b.loop, b.nodes[b.loop.node].level[b.nodes[b.loop.node].depth - 1].extent);
}

}  // namespace coppice
