// Kernels of the topology tools: dilation, erosion, pruning and copies between trees
// (sparse/topology_tools.h).
//
// Each runs over any tree: layouts come as data. What decides is read from masks that were written
// before anything is changed, one bit per cell and an item per word of them, so that nothing
// cascades and a launch may be repeated.
#include "sparse/runtime/containers.h"

using namespace coppice;
using namespace coppice::device;

// A node's containers in use, with a mask of 64-bit words for each.
struct CoppiceContainers {
  const TreeState* tree;
  const NodeLayout* node;
  const LoopElement* elements;
  uint64_t* masks;  // [elements][words]
  uint32_t words;
};
// Says which of the 26 (8, 2) cells around are neighbours: those that differ in at most that many
// coordinates.
struct CoppiceReach {
  int32_t axes;
};
// A cell of the node whose topology changes is a box of cells that are compared.
struct CoppiceBox {
  int32_t size[3];
};
struct CoppiceValues {
  uint64_t offset;  // from the container to cell 0's value
  uint32_t stride;
  uint32_t bytes;  // 4: float, 8: double
  double tolerance;
};

// Cells 64 w to 64 w + 63 of a container that are active now.
static uint64_t active_word(const LevelLayout& l, const unsigned char* container, uint32_t w) {
  if (l.kind == NodeKind::kBitmasked) return relaxed_load(reinterpret_cast<const uint64_t*>(container) + w);
  const uint32_t first = w * 64, n = cells_of(l) - first < 64 ? cells_of(l) - first : 64;
  if (l.kind == NodeKind::kDense) return n == 64 ? ~0ull : (1ull << n) - 1;
  uint64_t bits = 0;
  for (uint32_t i = 0; i < n; ++i)
    bits |= static_cast<uint64_t>(slot_cell(container, first + i) != kAmbientCell) << i;
  return bits;
}

// Calls visit(neighbour's local coordinate) until one says stop; true when one did.
template <class Visit>
static bool any_neighbour(const NodeLayout* node, CoppiceReach reach, Coord c, Visit visit) {
  const int reach_x = node->dims > 2, reach_y = node->dims > 1;
  for (int x = -reach_x; x <= reach_x; ++x) {
    for (int y = -reach_y; y <= reach_y; ++y) {
      for (int z = -1; z <= 1; ++z) {
        const int differing = (x != 0) + (y != 0) + (z != 0);
        if (differing == 0 || differing > reach.axes) continue;
        if (visit(Coord{c.x + x, c.y + y, c.z + z})) return true;
      }
    }
  }
  return false;
}

static bool inside(const LevelLayout& l, Coord c) {
  return static_cast<uint32_t>(c.x) < l.extent[0] && static_cast<uint32_t>(c.y) < l.extent[1] &&
         static_cast<uint32_t>(c.z) < l.extent[2];
}
static uint32_t local_index(const LevelLayout& l, Coord c) {
  return (static_cast<uint32_t>(c.x) * l.extent[1] + static_cast<uint32_t>(c.y)) * l.extent[2] +
         static_cast<uint32_t>(c.z);
}

COPPICE_KERNEL(snapshot_masks, Item i, CoppiceContainers c)
{
  const LoopElement& e = c.elements[i.index / c.words];
  c.masks[i.index] = active_word(last_level(c.node), e.container, static_cast<uint32_t>(i.index % c.words));
}

COPPICE_KERNEL(count_active, Item i, CoppiceContainers c, uint64_t* total)
{
  const LoopElement& e = c.elements[i.index / c.words];
  const uint64_t bits =
      active_word(last_level(c.node), e.container, static_cast<uint32_t>(i.index % c.words));
  if (bits != 0) coppice_fetch_add_u64(total, static_cast<uint64_t>(__builtin_popcountll(bits)));
}

// masks: what was active.
COPPICE_KERNEL(dilate_masks, Topology to, Item i, CoppiceContainers c, CoppiceReach reach)
{
  const LevelLayout& l = last_level(c.node);
  const LoopElement& e = c.elements[i.index / c.words];
  const uint64_t* own = c.masks + i.index / c.words * c.words;
  const uint32_t first = static_cast<uint32_t>(i.index % c.words) * 64;
  for (uint64_t bits = c.masks[i.index]; bits != 0; bits &= bits - 1) {
    const Coord at = local_coord(l, first + static_cast<uint32_t>(__builtin_ctzll(bits)));
    any_neighbour(c.node, reach, at, [&](Coord n) {
      if (inside(l, n)) {
        const uint32_t index = local_index(l, n);
        if (own[index / 64] >> (index % 64) & 1) return false;
      }
      const Coord g = global_coord(e, n);
      if (in_domain(*c.node, g)) to.activate(Padded(i), {g.x, g.y, g.z});
      return false;
    });
  }
}

// masks: gets the active cells that have an inactive neighbour.
COPPICE_KERNEL(find_border, Item i, CoppiceContainers c, CoppiceReach reach)
{
  const LevelLayout& l = last_level(c.node);
  const LoopElement& e = c.elements[i.index / c.words];
  const uint32_t word = static_cast<uint32_t>(i.index % c.words);
  uint64_t border = 0;
  for (uint64_t bits = active_word(l, e.container, word); bits != 0; bits &= bits - 1) {
    const Coord at = local_coord(l, word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits)));
    const bool has_inactive = any_neighbour(c.node, reach, at, [&](Coord n) {
      if (inside(l, n)) {
        const uint32_t index = local_index(l, n);
        return l.kind == NodeKind::kBitmasked ? !mask_bit(e.container, index)
                                              : slot_cell(e.container, index) == kAmbientCell;
      }
      return !is_active(*c.node, find(*c.node, c.tree, global_coord(e, n)));
    });
    if (has_inactive) border |= bits & -bits;
  }
  c.masks[i.index] = border;
}

// masks: gets the active cells that are to go. Of the other node's cells in their boxes, one that is active
// (keep_active), or one that is not, keeps them.
COPPICE_KERNEL(find_leaving, Item i, CoppiceContainers c, CoppiceBox box, const TreeState* other,
               const NodeLayout* other_node, int keep_active)
{
  const LevelLayout& l = last_level(c.node);
  const LoopElement& e = c.elements[i.index / c.words];
  const uint32_t word = static_cast<uint32_t>(i.index % c.words);
  const int64_t cells = static_cast<int64_t>(box.size[0]) * box.size[1] * box.size[2];
  uint64_t leaving = 0;
  for (uint64_t bits = active_word(l, e.container, word); bits != 0; bits &= bits - 1) {
    const Coord at =
        global_coord(e, local_coord(l, word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits))));
    bool stays = false;
    for (int64_t k = 0; k < cells && !stays; ++k) {
      const int32_t x = static_cast<int32_t>(k / box.size[2] / box.size[1]),
                    y = static_cast<int32_t>(k / box.size[2] % box.size[1]),
                    z = static_cast<int32_t>(k % box.size[2]);
      const Coord at_other{at.x * box.size[0] + x, at.y * box.size[1] + y, at.z * box.size[2] + z};
      stays = is_active(*other_node, find(*other_node, other, at_other)) == (keep_active != 0);
    }
    if (!stays) leaving |= bits & -bits;
  }
  c.masks[i.index] = leaving;
}

// Marked cells that another node's domain does not have.
COPPICE_KERNEL(count_outside, Item i, CoppiceContainers c, const NodeLayout* other_node, uint64_t* outside)
{
  const LoopElement& e = c.elements[i.index / c.words];
  const uint32_t first = static_cast<uint32_t>(i.index % c.words) * 64;
  uint64_t n = 0;
  for (uint64_t bits = c.masks[i.index]; bits != 0; bits &= bits - 1) {
    const Coord at = local_coord(last_level(c.node), first + static_cast<uint32_t>(__builtin_ctzll(bits)));
    n += !in_domain(*other_node, global_coord(e, at));
  }
  if (n != 0) coppice_fetch_add_u64(outside, n);
}

COPPICE_KERNEL(activate_marked, Topology to, Item i, CoppiceContainers c)
{
  const LoopElement& e = c.elements[i.index / c.words];
  const uint32_t first = static_cast<uint32_t>(i.index % c.words) * 64;
  for (uint64_t bits = c.masks[i.index]; bits != 0; bits &= bits - 1) {
    const Coord g = global_coord(
        e, local_coord(last_level(c.node), first + static_cast<uint32_t>(__builtin_ctzll(bits))));
    to.activate(Padded(i), {g.x, g.y, g.z});
  }
}

COPPICE_KERNEL(deactivate_marked, Topology to, Item i, CoppiceContainers c)
{
  const LoopElement& e = c.elements[i.index / c.words];
  const uint32_t first = static_cast<uint32_t>(i.index % c.words) * 64;
  for (uint64_t bits = c.masks[i.index]; bits != 0; bits &= bits - 1) {
    const Coord g = global_coord(
        e, local_coord(last_level(c.node), first + static_cast<uint32_t>(__builtin_ctzll(bits))));
    to.deactivate(Padded(i), {g.x, g.y, g.z});
  }
}

// ---- pruning: `kept` has a bit per cell of the pointer node

static void keep_cell(uint64_t* kept, uint32_t cell) {
  if ((relaxed_load(kept + cell / 64) >> (cell % 64) & 1) == 0)
    coppice_fetch_or_u64(kept + cell / 64, 1ull << (cell % 64));
}

// Item i is a container; a NaN keeps it. Cells of a pointer node that are not active read as zeros.
COPPICE_KERNEL(keep_with_values, Item i, CoppiceContainers c, CoppiceValues v, uint64_t* kept)
{
  const LoopElement& e = c.elements[i.index];
  const LevelLayout& l = last_level(c.node);
  const uint32_t n = cells_of(l);
  for (uint32_t k = 0; k < n; ++k) {
    const unsigned char* const at = value_in(c.tree, l, e.container, k, v.offset, v.stride);
    const double value = v.bytes == 4 ? static_cast<double>(*reinterpret_cast<const float*>(at))
                                      : *reinterpret_cast<const double*>(at);
    if (value <= v.tolerance && -value <= v.tolerance) continue;
    keep_cell(kept, e.cell);
    return;
  }
}

// Item i is allocator cell i + 1; what a cell holds begins behind its header, and ends before temporaries.
COPPICE_KERNEL(keep_with_bytes, Item i, const AllocatorState* a, uint64_t* kept)
{
  const uint32_t cell = static_cast<uint32_t>(i.index) + 1;
  const unsigned char* bytes = a->cells + cell * a->cell_bytes;
  if (reinterpret_cast<const CellHeader*>(bytes)->state != CellState::kLive) return;
  for (uint64_t at = sizeof(CellHeader); at < a->zeroed_bytes; at += sizeof(uint64_t)) {
    if (*reinterpret_cast<const uint64_t*>(bytes + at) == 0) continue;
    keep_cell(kept, cell);
    return;
  }
}

COPPICE_KERNEL(drop_unkept, Topology to, Item i, const AllocatorState* a, const NodeLayout* node,
               const uint64_t* kept, uint64_t* dropped)
{
  const uint32_t cell = static_cast<uint32_t>(i.index) + 1;
  const auto* header = reinterpret_cast<const CellHeader*>(a->cells + cell * a->cell_bytes);
  if (header->state != CellState::kLive || (kept[cell / 64] >> (cell % 64) & 1) != 0) return;
  coppice_fetch_add_u64(dropped, 1);
  to.deactivate(Padded(i), {plus(node->origin[0], header->coord[0]), plus(node->origin[1], header->coord[1]),
                            plus(node->origin[2], header->coord[2])});
}
