// Activation of the cells in a box, container by container: what a loop over a box does before its cells are
// visited.
//
// Device-clean. The box lies in the domain. A container that it meets is one item, however many of its cells
// are in the box; the bits of a bitmasked one are set by the word.
#pragma once
#include "sparse/device/activation.h"

namespace coppice::device {

// Holds the containers of a node that a box meets: `count` of them per dimension from number `first` on.
struct BoxContainers {
  uint32_t first[kMaxDims], count[kMaxDims];
};
constexpr BoxContainers containers_in(const NodeLayout& node, const LoopBox& box) {
  const LevelLayout& leaf = node.level[node.depth - 1];
  BoxContainers c{};
  for (int d = 0; d < kMaxDims; ++d) {
    const auto origin = static_cast<uint32_t>(node.origin[d]);
    const uint32_t last = (static_cast<uint32_t>(box.high[d]) - 1 - origin) / leaf.extent[d];
    c.first[d] = (static_cast<uint32_t>(box.low[d]) - origin) / leaf.extent[d];
    c.count[d] = last - c.first[d] + 1;
  }
  return c;
}

// Returns the part of a box that lies in its container number `i`, the last dimension fastest.
COPPICE_INLINE LoopBox box_in_container(const NodeLayout& node, const LoopBox& box, uint64_t i) {
  const LevelLayout& leaf = node.level[node.depth - 1];
  const BoxContainers all = containers_in(node, box);
  LoopBox part = box;
  for (int d = kMaxDims - 1; d >= 0; --d) {
    const uint32_t at = all.first[d] + static_cast<uint32_t>(i % all.count[d]);
    i /= all.count[d];
    const int64_t low = int64_t{node.origin[d]} + int64_t{at} * leaf.extent[d], high = low + leaf.extent[d];
    if (part.low[d] < low) part.low[d] = static_cast<int32_t>(low);
    if (part.high[d] > high) part.high[d] = static_cast<int32_t>(high);
  }
  return part;
}

// Activates cells [first, end) of a bitmasked container.
COPPICE_INLINE void activate_run(TreeState* tree, const LevelLayout& level, unsigned char* container,
                                 uint32_t first, uint32_t end) {
  for (uint32_t word = first / 64; uint64_t{word} * 64 < end; ++word) {
    uint64_t bits = ~uint64_t{0};
    if (word == first / 64) bits <<= first % 64;
    if (end - word * 64 < 64) bits &= (uint64_t{1} << (end - word * 64)) - 1;
    activate_bits(tree, level, container, word, bits);
  }
}

// Activates the cells of a box that lies in one container, and all nodes above them.
COPPICE_ACTIVATES inline void activate_part(const LaunchBlock* block, uint32_t binding, const LoopBox& part) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const LevelLayout& leaf = node.level[node.depth - 1];
  const Coord low{part.low[0], part.low[1], part.low[2]};
  if (leaf.kind == NodeKind::kPointer) {
    for (int32_t x = low.x; x < part.high[0]; ++x) {
      for (int32_t y = low.y; y < part.high[1]; ++y) {
        for (int32_t z = low.z; z < part.high[2]; ++z)
          find_or_activate(block, node, f.tree, binding, {x, y, z});
      }
    }
    return;
  }
  const CellRef p = find_or_activate(block, node, f.tree, binding, low);
  if (!p.active || leaf.kind != NodeKind::kBitmasked) return;
  // Rows that are whole lie behind each other, and so do planes.
  const auto nx = static_cast<uint32_t>(part.high[0] - low.x),
             ny = static_cast<uint32_t>(part.high[1] - low.y),
             nz = static_cast<uint32_t>(part.high[2] - low.z);
  const uint32_t row = leaf.extent[2], plane = leaf.extent[1] * row;
  const bool whole_rows = nz == row, whole_planes = whole_rows && ny == leaf.extent[1];
  const uint32_t planes = whole_planes ? 1 : nx, rows = whole_rows ? 1 : ny,
                 run = whole_planes ? nx * plane
                       : whole_rows ? ny * row
                                    : nz;
  for (uint32_t x = 0; x < planes; ++x) {
    for (uint32_t y = 0; y < rows; ++y) {
      const uint32_t first = p.index + x * plane + y * row;
      activate_run(tree_state(block, f.tree), leaf, p.container, first, first + run);
    }
  }
}

}  // namespace coppice::device
