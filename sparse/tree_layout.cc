// Fixing how trees lie in memory (see tree_layout.h).
#include "sparse/tree_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "sparse/node_layout.h"
#include "sparse/node_sizes.h"

namespace coppice {

using device::kMaxDims;
using device::NodeKind;

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

// Returns whether the nodes on a way divide each axis into at most 2^31 cells.
bool has_countable_span(const std::vector<TreeNode>& nodes, const std::vector<uint32_t>& way) {
  for (int d = 0; d < kMaxDims; ++d) {
    uint64_t span = 1;
    for (const uint32_t n : way) {
      span *= nodes[n].extent[d];
      if (span > uint64_t{1} << 31) return false;
    }
  }
  return true;
}

}  // namespace

uint32_t max_chunks(const NodeDescription& n) {
  return n.kind == NodeKind::kDynamic ? static_cast<uint32_t>((n.max_length + n.num_cells - 1) / n.num_cells)
                                      : 1;
}

TreeLayout::TreeLayout(const TreeDescription& description, bool tracks_temporaries)
    : description_(description) {
  if (description.node(0).children.empty()) refuse(fmt::format("tree '{}' has no nodes", options().name));
  for (const NodeDescription& n : description.nodes()) nodes_.push_back({n});
  for (const FieldDescription& f : description.fields()) fields_.push_back({f});
  assign_dimensions();
  number_allocators();
  find_sizes(description, nodes_, fields_, tracks_temporaries);
  // All nodes are checked before any layout is built: a node's layout needs the spans of those below it.
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    if (!has_countable_span(nodes_, path_nodes(id)))
      refuse(fmt::format("node {}: more than 2^31 coordinates on an axis", path(id)));
  }
  node_layouts_.resize(nodes_.size());
  for (uint32_t id = 1; id < nodes_.size(); ++id) node_layouts_[id] = build_node_layout(*this, id);
  build_below();
}

std::string TreeLayout::field_name(uint32_t id) const {
  return fmt::format("'{}' on {}", field(id).name, path(field(id).node));
}

// The tree's dimensions are the axes that any node names, in axis order; (x, y, z) is filled from the right.
void TreeLayout::assign_dimensions() {
  for (const TreeNode& n : nodes_) {
    for (Axis a : n.axes) {
      if (std::find(axes_.begin(), axes_.end(), a) == axes_.end()) axes_.push_back(a);
    }
  }
  std::sort(axes_.begin(), axes_.end());
  if (axes_.size() > kMaxDims)
    refuse(fmt::format("tree '{}': its nodes name {} axes, at most {} are possible", options().name,
                       axes_.size(), kMaxDims));
  for (TreeNode& n : nodes_) {
    for (size_t a = 0; a < n.axes.size(); ++a) {
      const auto at = std::find(axes_.begin(), axes_.end(), n.axes[a]) - axes_.begin();
      n.extent[kMaxDims - axes_.size() + at] = static_cast<uint32_t>(n.extents[a]);
    }
  }
}

void TreeLayout::number_allocators() {
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].kind != NodeKind::kPointer && nodes_[id].kind != NodeKind::kDynamic) continue;
    if (allocator_nodes_.size() >= device::kMaxAllocators)
      refuse(fmt::format("tree '{}': at most {} pointer and dynamic nodes", options().name,
                         device::kMaxAllocators));
    nodes_[id].allocator = num_allocators();
    allocator_nodes_.push_back(id);
  }
}

// Collects the nodes whose containers lie in a cell of `id`, without leaving it through a slot.
void TreeLayout::find_below(uint32_t id, std::vector<uint32_t>& below) const {
  for (uint32_t child : nodes_[id].children) {
    below.push_back(child);
    const NodeKind kind = nodes_[child].kind;
    if (kind == NodeKind::kDense || kind == NodeKind::kBitmasked) find_below(child, below);
  }
}

void TreeLayout::build_below() {
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    std::vector<uint32_t> below;
    find_below(id, below);
    const bool is_masked = nodes_[id].kind == NodeKind::kBitmasked;
    const bool has_more_than_bytes = std::any_of(below.begin(), below.end(), [&](uint32_t n) {
      const NodeKind kind = nodes_[n].kind;
      return kind == NodeKind::kPointer || kind == NodeKind::kDynamic ||
             (kind == NodeKind::kBitmasked && is_masked);
    });
    if (!has_more_than_bytes) continue;
    node_layouts_[id].below = {static_cast<uint32_t>(below_.size()), static_cast<uint32_t>(below.size())};
    below_.insert(below_.end(), below.begin(), below.end());
  }
}

bool TreeLayout::has_neighbour_table(uint32_t node) const {
  return node != 0 && nodes_[node].parent != 0 && nodes_[nodes_[node].parent].kind == NodeKind::kPointer;
}

uint64_t TreeLayout::key_space(const std::vector<uint32_t>& path, size_t levels) const {
  unsigned __int128 space = 1;
  for (size_t l = 0; l < levels; ++l) {
    const NodeDescription& n = nodes_[path[l]];
    space *= n.kind == NodeKind::kDynamic ? max_chunks(n) : n.num_cells;
    if (space >> 64 != 0) return ~uint64_t{0};
  }
  return static_cast<uint64_t>(space);
}

}  // namespace coppice
