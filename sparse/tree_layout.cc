// Describing trees and fixing their memory layout (see tree_storage.h; drawings in sparse/device/layout.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::kMaxDims;
using device::NodeKind;

namespace {

uint64_t next_serial() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

char axis_name(Axis axis) { return "ijklmnop"[static_cast<int>(axis)]; }

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

// Returns whether the nodes on a way divide each axis into at most 2^31 cells.
bool has_countable_span(const std::vector<NodeDescription>& nodes, const std::vector<uint32_t>& way) {
  for (int d = 0; d < kMaxDims; ++d) {
    uint64_t span = 1;
    for (const uint32_t n : way) {
      span *= nodes[n].extent[d];
      if (span > uint64_t{1} << 31) return false;
    }
  }
  return true;
}

constexpr size_t kMostAlignment = 256;  // that of the memory of all devices

// Errors name trees and fields, and are of one line.
void check_name(const char* what, std::string name) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::none_of(name.begin(), name.end(), is_control)) return;
  std::replace_if(name.begin(), name.end(), is_control, '?');
  refuse(fmt::format("{} '{}': its name has a control character", what, name));
}

}  // namespace

const char* node_kind_name(NodeKind kind) {
  switch (kind) {
    case NodeKind::kDense:
      return "dense";
    case NodeKind::kBitmasked:
      return "bitmasked";
    case NodeKind::kPointer:
      return "pointer";
    case NodeKind::kDynamic:
      return "dynamic";
  }
  return "?";
}

// The runtime reaches all of a tree by pointers, which is not what the checks are for.
static CodegenOptions without_checks() {
  CodegenOptions options = codegen_options();
  options.checks = false;
  return options;
}

TreeStorage::TreeStorage(IntrusivePtr<Device> device, TreeOptions options)
    : device_(device),
      options_(std::move(options)),
      host_program_(device_, without_checks()),
      program_(device_, without_checks()),
      serial_(next_serial()) {
  check_name("tree", options_.name);
  nodes_.emplace_back();  // the root: one dense cell
}

void TreeStorage::require_describing(const char* what) const {
  if (frozen())
    refuse(fmt::format("tree '{}': cannot {}: the tree is in use; describe all of it before its first launch",
                       options_.name, what));
}

uint32_t TreeStorage::add_node(uint32_t parent, NodeKind kind, std::vector<Axis> axes,
                               std::vector<int32_t> extents) {
  require_describing("add a node");
  const bool names_axes = !axes.empty();
  if (!names_axes) {
    for (size_t a = 0; a < extents.size(); ++a) axes.push_back(static_cast<Axis>(a));
  }
  const std::string what =
      fmt::format("{}.{}[{}]", path(parent), node_kind_name(kind), fmt::join(extents, ","));
  if (extents.empty() || extents.size() > kMaxDims)
    refuse(fmt::format("node {}: 1 to {} extents expected", what, kMaxDims));
  if (axes.size() != extents.size())
    refuse(fmt::format("node {}: {} axes named for {} extents", what, axes.size(), extents.size()));
  for (size_t a = 0; a < axes.size(); ++a) {
    if (extents[a] < 1) refuse(fmt::format("node {}: extent {} is below 1", what, extents[a]));
    if (std::count(axes.begin(), axes.end(), axes[a]) > 1)
      refuse(fmt::format("node {}: axis {} is named twice", what, axis_name(axes[a])));
    if (a > 0 && axes[a] < axes[a - 1])
      refuse(fmt::format("node {}: axes must be named in the order i, j, k, ...", what));
  }
  uint64_t num_cells = 1;
  for (int32_t e : extents) {
    num_cells *= static_cast<uint64_t>(e);  // of two numbers below 2^32
    if (num_cells >= uint64_t{1} << 32)
      refuse(fmt::format("node {}: more than 2^32 - 1 cells in one container", what));
  }
  require_place_below(parent, what);
  if (!names_axes) require_axes_of_others(parent, axes, what);
  NodeDescription n;
  n.kind = kind, n.parent = parent, n.axes = std::move(axes), n.extents = std::move(extents),
  n.num_cells = num_cells, n.names_axes = names_axes;
  return attach(std::move(n));
}

void TreeStorage::require_place_below(uint32_t parent, const std::string& what) const {
  if (nodes_[parent].kind == NodeKind::kDynamic)
    refuse(fmt::format("node {}: a dynamic node has fields but no nodes below it", what));
  if (path_nodes(parent).size() >= device::kMaxDepth)
    refuse(fmt::format("node {}: at most {} nodes on the way from the root", what, device::kMaxDepth));
}

// Extents without axes are those of all of the tree's axes: as many as the nodes above have, and as any other
// node has that does not name its own.
void TreeStorage::require_axes_of_others(uint32_t parent, const std::vector<Axis>& axes,
                                         const std::string& what) const {
  const auto count = [](size_t n, const char* thing, const char* things) {
    return fmt::format("{} {}", n, n == 1 ? thing : things);
  };
  const auto refuse_axes = [&](const std::string& others) {
    refuse(
        fmt::format("node {}: {} given, {}; a node on fewer or other axes names them, as in "
                    "dense({{Axis::i}}, {{8}})",
                    what, count(axes.size(), "extent", "extents"), others));
  };
  std::vector<Axis> above;
  for (const uint32_t n : path_nodes(parent))
    above.insert(above.end(), nodes_[n].axes.begin(), nodes_[n].axes.end());
  std::sort(above.begin(), above.end());
  above.erase(std::unique(above.begin(), above.end()), above.end());
  if (!above.empty() && above != axes) {
    std::string names;
    for (const Axis a : above) names += fmt::format("{}{}", names.empty() ? "" : ", ", axis_name(a));
    refuse_axes(fmt::format("{} divides {} ({})", path(parent), count(above.size(), "axis", "axes"), names));
  }
  for (uint32_t n = 1; n < nodes_.size(); ++n) {
    const size_t other = nodes_[n].axes.size();
    if (nodes_[n].kind == NodeKind::kDynamic || nodes_[n].names_axes || other == axes.size()) continue;
    refuse_axes(fmt::format("{} has {}", path(n), other));
  }
}

uint32_t TreeStorage::attach(NodeDescription n) {
  const uint32_t id = static_cast<uint32_t>(nodes_.size()), parent = n.parent;
  nodes_.push_back(std::move(n));
  nodes_[parent].children.push_back(id);
  return id;
}

uint32_t TreeStorage::add_lists(uint32_t parent, std::optional<Axis> axis, int32_t max_length,
                                int32_t chunk_cells) {
  require_describing("add a node");
  const std::string what = fmt::format("{}.dynamic[{}]", path(parent), max_length);
  if (max_length < 1 || max_length > 1 << 30)
    refuse(fmt::format("node {}: a list's largest length is between 1 and 2^30", what));
  if (chunk_cells < 1 || (chunk_cells & (chunk_cells - 1)) != 0)
    refuse(fmt::format("node {}: chunks of {} elements; a power of two expected", what, chunk_cells));
  require_place_below(parent, what);
  std::vector<Axis> taken;
  for (uint32_t a : path_nodes(parent))
    taken.insert(taken.end(), nodes_[a].axes.begin(), nodes_[a].axes.end());
  auto is_taken = [&](Axis a) { return std::count(taken.begin(), taken.end(), a) > 0; };
  if (axis && is_taken(*axis))
    refuse(fmt::format("node {}: axis {} is divided above it; a dynamic node needs an axis of its own", what,
                       axis_name(*axis)));
  NodeDescription n;
  n.kind = NodeKind::kDynamic, n.parent = parent, n.extents = {max_length};
  n.num_cells = static_cast<uint64_t>(chunk_cells), n.max_length = static_cast<uint32_t>(max_length);
  return attach(std::move(n));
}

uint32_t TreeStorage::add_field(uint32_t node, std::string name, size_t bytes, size_t alignment) {
  require_describing("place a field");
  check_name("field", name);
  if (node == 0) refuse(fmt::format("field '{}': fields are placed on nodes below the root", name));
  for (const FieldDescription& f : fields_) {
    if (f.name == name)
      refuse(fmt::format("field '{}': tree '{}' has a field of this name on {}", name, options_.name,
                         path(f.node)));
  }
  if (alignment > kMostAlignment) {
    refuse(fmt::format("field '{}': its type is aligned to {} bytes; at most {} are possible", name,
                       alignment, kMostAlignment));
  }
  if (nodes_[node].fields.size() >= device::kMaxFieldsPerNode) {
    refuse(fmt::format("field '{}': {} has {} fields, the most a node can have", name, path(node),
                       device::kMaxFieldsPerNode));
  }
  nodes_[node].fields.push_back(static_cast<uint32_t>(fields_.size()));
  fields_.push_back({std::move(name), node, bytes, alignment});
  return static_cast<uint32_t>(fields_.size() - 1);
}

void TreeStorage::set_layout(uint32_t node, CellLayout layout) {
  require_describing("change a layout");
  nodes_[node].layout = layout;
}

std::vector<uint32_t> TreeStorage::path_nodes(uint32_t node) const {
  std::vector<uint32_t> path;
  for (uint32_t n = node; n != 0; n = nodes_[n].parent) path.insert(path.begin(), n);
  return path;
}

std::string TreeStorage::path(uint32_t node) const {
  std::string text = options_.name;
  for (uint32_t n : path_nodes(node))
    text += fmt::format(".{}[{}]", node_kind_name(nodes_[n].kind), fmt::join(nodes_[n].extents, ","));
  return text;
}

bool TreeStorage::has_neighbour_table(uint32_t node) const {
  return node != 0 && nodes_[node].parent != 0 && nodes_[nodes_[node].parent].kind == NodeKind::kPointer;
}

// The tree's dimensions are the axes that any node names, in axis order; (x, y, z) is filled from the right.
void TreeStorage::assign_dimensions() {
  for (const NodeDescription& n : nodes_) {
    for (Axis a : n.axes) {
      if (std::find(axes_.begin(), axes_.end(), a) == axes_.end()) axes_.push_back(a);
    }
  }
  std::sort(axes_.begin(), axes_.end());
  if (axes_.size() > kMaxDims)
    refuse(fmt::format("tree '{}': its nodes name {} axes, at most {} are possible", options_.name,
                       axes_.size(), kMaxDims));
  for (NodeDescription& n : nodes_) {
    for (size_t a = 0; a < n.axes.size(); ++a) {
      const auto at = std::find(axes_.begin(), axes_.end(), n.axes[a]) - axes_.begin();
      n.extent[kMaxDims - axes_.size() + at] = static_cast<uint32_t>(n.extents[a]);
    }
  }
}

// Builds the constant description that kernels get: the way from the root to the node.
void TreeStorage::build_layout(uint32_t id) {
  device::NodeLayout& layout = layouts_[id];
  layout = {};
  const std::vector<uint32_t> path = path_nodes(id);
  layout.depth = static_cast<uint32_t>(path.size());
  layout.dims = dims();
  layout.id = id;
  layout.root_offset = path.empty() ? 0 : nodes_[path[0]].offset_in_cell;
  std::array<uint64_t, kMaxDims> span{1, 1, 1};
  for (size_t l = path.size(); l-- > 0;) {
    const NodeDescription& n = nodes_[path[l]];
    device::LevelLayout& level = layout.level[l];
    level.kind = n.kind;
    level.allocator = n.allocator;
    level.cell_offset = n.cell_offset;
    level.cell_bytes = n.cell_bytes;
    level.chunk_cells = n.kind == NodeKind::kDynamic ? static_cast<uint32_t>(n.num_cells) : 0;
    level.max_length = n.max_length;
    level.node = path[l];
    const uint64_t base = n.kind == NodeKind::kPointer ? n.cell_offset : 0;
    level.child_offset = l + 1 < path.size() ? base + nodes_[path[l + 1]].offset_in_cell : 0;
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
  // The origin is told in coordinates of the leaves; an inner node's is as many of its own cells.
  // Lists divide nothing: they are named by the coordinates of the node that they are below, the one
  // of a root by the tree's lowest.
  std::array<int64_t, kMaxDims> below{1, 1, 1};
  const auto divides = [&](uint32_t n) { return nodes_[n].kind != NodeKind::kDynamic; };
  for (uint32_t n = divides(id) || nodes_[id].parent == 0 ? id : nodes_[id].parent;;) {
    const std::vector<uint32_t>& children = nodes_[n].children;
    const auto child = std::find_if(children.begin(), children.end(), divides);
    if (child == children.end()) break;
    n = *child;
    for (int d = 0; d < kMaxDims; ++d) below[d] *= nodes_[n].extent[d];
  }
  for (uint32_t a = 0; a < dims(); ++a) {
    const int d = kMaxDims - static_cast<int>(dims()) + static_cast<int>(a);
    if (options_.origin[a] % below[d] != 0) {
      refuse(fmt::format("tree '{}': origin {} is not a multiple of {} cells of {}", options_.name,
                         options_.origin[a], below[d], this->path(id)));
    }
    layout.origin[d] = static_cast<int32_t>(options_.origin[a] / below[d]);
    if (layout.origin[d] + int64_t{layout.domain[d]} > int64_t{1} << 31) {
      refuse(fmt::format("node {}: {} coordinates from {} on end beyond 2^31", this->path(id),
                         layout.domain[d], layout.origin[d]));
    }
  }
  for (uint32_t f : nodes_[id].fields) {
    layout.arrays[layout.num_arrays++] = {fields_[f].offset, fields_[f].stride,
                                          static_cast<uint32_t>(fields_[f].bytes)};
  }
}

// Collects the nodes whose containers lie in a cell of `id`, without leaving it through a slot.
void TreeStorage::find_below(uint32_t id, std::vector<uint32_t>& below) const {
  for (uint32_t child : nodes_[id].children) {
    below.push_back(child);
    const NodeKind kind = nodes_[child].kind;
    if (kind == NodeKind::kDense || kind == NodeKind::kBitmasked) find_below(child, below);
  }
}

void TreeStorage::build_below() {
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
    layouts_[id].below = {static_cast<uint32_t>(below_.size()), static_cast<uint32_t>(below.size())};
    below_.insert(below_.end(), below.begin(), below.end());
  }
}

void TreeStorage::freeze() {
  if (frozen()) return;
  const std::lock_guard lock(freeze_mutex_);
  if (frozen()) return;
  fix_layout();
  frozen_.store(true, std::memory_order_release);
}

void TreeStorage::fix_layout() {
  if (nodes_[0].children.empty()) refuse(fmt::format("tree '{}' has no nodes", options_.name));
  // A call that ended in an Error may have left some of these.
  axes_.clear(), allocators_.clear(), layouts_.clear(), below_.clear(), has_full_ranges_ = true;
  assign_dimensions();
  for (uint32_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].kind != NodeKind::kPointer && nodes_[id].kind != NodeKind::kDynamic) continue;
    if (allocators_.size() >= device::kMaxAllocators)
      refuse(fmt::format("tree '{}': at most {} pointer and dynamic nodes", options_.name,
                         device::kMaxAllocators));
    nodes_[id].allocator = static_cast<uint32_t>(allocators_.size());
    allocators_.push_back({id});
  }
  lay_out(0);
  layouts_.resize(nodes_.size());
  // All nodes are checked before any layout is built: a node's layout needs the spans of those below it.
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    if (!has_countable_span(nodes_, path_nodes(id)))
      refuse(fmt::format("node {}: more than 2^31 coordinates on an axis", path(id)));
  }
  for (uint32_t id = 1; id < nodes_.size(); ++id) build_layout(id);
  build_below();
  lists_.resize(nodes_.size());
  try {
    allocate_memory();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("tree '{}': {}", options_.name, error.message()));
  }
}

}  // namespace coppice
