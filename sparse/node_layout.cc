// The nodes' constant descriptions (see node_layout.h).
#include "sparse/node_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace coppice {

using device::kMaxDims;
using device::NodeKind;
using device::NodeLayout;

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

void build_levels(const TreeLayout& tree, const std::vector<uint32_t>& path, NodeLayout& layout) {
  std::array<uint64_t, kMaxDims> span{1, 1, 1};
  for (size_t l = path.size(); l-- > 0;) {
    const TreeNode& n = tree.node(path[l]);
    device::LevelLayout& level = layout.level[l];
    level.kind = n.kind;
    level.allocator = n.allocator;
    level.cell_offset = n.cell_offset;
    level.cell_bytes = n.cell_bytes;
    level.chunk_cells = n.kind == NodeKind::kDynamic ? static_cast<uint32_t>(n.num_cells) : 0;
    level.max_length = n.max_length;
    level.node = path[l];
    const uint64_t base = n.kind == NodeKind::kPointer ? n.cell_offset : 0;
    level.child_offset = l + 1 < path.size() ? base + tree.node(path[l + 1]).offset_in_cell : 0;
    for (int d = 0; d < kMaxDims; ++d) {
      level.extent[d] = n.extent[d];
      level.span[d] = static_cast<uint32_t>(span[d]);
      span[d] *= n.extent[d];
    }
  }
  // Levels past the node are never walked; extents of 1 keep their divisions defined.
  for (size_t l = path.size(); l < device::kMaxDepth; ++l) {
    for (int d = 0; d < kMaxDims; ++d) layout.level[l].extent[d] = layout.level[l].span[d] = 1;
  }
  for (int d = 0; d < kMaxDims; ++d) layout.domain[d] = static_cast<uint32_t>(span[d]);
}

// Returns how many cells of the leaves a cell of the node spans. Lists divide nothing: they are named by the
// coordinates of the node that they are below, the one of a root by the tree's lowest.
std::array<int64_t, kMaxDims> cells_below(const TreeLayout& tree, uint32_t id) {
  std::array<int64_t, kMaxDims> below{1, 1, 1};
  const auto divides = [&](uint32_t n) { return tree.node(n).kind != NodeKind::kDynamic; };
  for (uint32_t n = divides(id) || tree.node(id).parent == 0 ? id : tree.node(id).parent;;) {
    const std::vector<uint32_t>& children = tree.node(n).children;
    const auto child = std::find_if(children.begin(), children.end(), divides);
    if (child == children.end()) return below;
    n = *child;
    for (int d = 0; d < kMaxDims; ++d) below[d] *= tree.node(n).extent[d];
  }
}

// The origin is told in coordinates of the leaves; an inner node's is as many of its own cells.
void place_origin(const TreeLayout& tree, uint32_t id, NodeLayout& layout) {
  const std::array<int64_t, kMaxDims> below = cells_below(tree, id);
  const TreeOptions& options = tree.options();
  for (uint32_t a = 0; a < layout.dims; ++a) {
    const int d = kMaxDims - static_cast<int>(layout.dims) + static_cast<int>(a);
    if (options.origin[a] % below[d] != 0) {
      refuse(fmt::format("tree '{}': origin {} is not a multiple of {} cells of {}", options.name,
                         options.origin[a], below[d], tree.path(id)));
    }
    layout.origin[d] = static_cast<int32_t>(options.origin[a] / below[d]);
    if (layout.origin[d] + int64_t{layout.domain[d]} > int64_t{1} << 31) {
      refuse(fmt::format("node {}: {} coordinates from {} on end beyond 2^31", tree.path(id),
                         layout.domain[d], layout.origin[d]));
    }
  }
}

}  // namespace

NodeLayout build_node_layout(const TreeLayout& tree, uint32_t id) {
  NodeLayout layout{};
  const std::vector<uint32_t> path = tree.path_nodes(id);
  layout.depth = static_cast<uint32_t>(path.size());
  layout.dims = tree.dims();
  layout.id = id;
  layout.root_offset = path.empty() ? 0 : tree.node(path[0]).offset_in_cell;
  build_levels(tree, path, layout);
  place_origin(tree, id, layout);
  const TreeNode& n = tree.node(id);
  for (uint32_t f : n.fields) {
    if (tree.field(f).is_temporary()) continue;
    layout.arrays[layout.num_arrays++] = {tree.field(f).offset, tree.field(f).stride,
                                          static_cast<uint32_t>(tree.field(f).bytes)};
  }
  if (n.marks_stride != 0)
    layout.arrays[layout.num_arrays++] = {n.marks_offset, n.marks_stride, sizeof(uint64_t)};
  return layout;
}

}  // namespace coppice
