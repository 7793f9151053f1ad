// Checks what may be added to a tree, and where (see tree_description.h).
#include "sparse/tree_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace coppice {

using device::kMaxDims;
using device::NodeKind;

namespace {

char axis_name(Axis axis) { return "ijklmnop"[static_cast<int>(axis)]; }

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

constexpr size_t kMostAlignment = 256;  // that of the memory of all devices

// Errors name trees and fields, and are of one line.
void check_name(const char* what, std::string name) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::none_of(name.begin(), name.end(), is_control)) return;
  std::replace_if(name.begin(), name.end(), is_control, '?');
  refuse(fmt::format("{} '{}': its name has a control character", what, name));
}

void check_extents(const std::vector<Axis>& axes, const std::vector<int32_t>& extents,
                   const std::string& what) {
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
}

// Returns the cells of a container.
uint64_t count_cells(const std::vector<int32_t>& extents, const std::string& what) {
  uint64_t num_cells = 1;
  for (int32_t e : extents) {
    num_cells *= static_cast<uint64_t>(e);  // of two numbers below 2^32
    if (num_cells >= uint64_t{1} << 32)
      refuse(fmt::format("node {}: more than 2^32 - 1 cells in one container", what));
  }
  return num_cells;
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

TreeDescription::TreeDescription(TreeOptions options) : options_(std::move(options)) {
  check_name("tree", options_.name);
  nodes_.emplace_back();  // the root: one dense cell
}

uint32_t TreeDescription::add_node(uint32_t parent, NodeKind kind, std::vector<Axis> axes,
                                   std::vector<int32_t> extents) {
  const bool names_axes = !axes.empty();
  if (!names_axes) {
    for (size_t a = 0; a < extents.size(); ++a) axes.push_back(static_cast<Axis>(a));
  }
  const std::string what =
      fmt::format("{}.{}[{}]", path(parent), node_kind_name(kind), fmt::join(extents, ","));
  check_extents(axes, extents, what);
  const uint64_t num_cells = count_cells(extents, what);
  require_place_below(parent, what);
  if (!names_axes) require_axes_of_others(parent, axes, what);
  NodeDescription n;
  n.kind = kind, n.parent = parent, n.axes = std::move(axes), n.extents = std::move(extents),
  n.num_cells = num_cells, n.names_axes = names_axes;
  return attach(std::move(n));
}

void TreeDescription::require_place_below(uint32_t parent, const std::string& what) const {
  if (nodes_[parent].kind == NodeKind::kDynamic)
    refuse(fmt::format("node {}: a dynamic node has fields but no nodes below it", what));
  if (path_nodes(parent).size() >= device::kMaxDepth)
    refuse(fmt::format("node {}: at most {} nodes on the way from the root", what, device::kMaxDepth));
}

// Extents without axes are those of all of the tree's axes: as many as the nodes above have, and as any other
// node has that does not name its own.
void TreeDescription::require_axes_of_others(uint32_t parent, const std::vector<Axis>& axes,
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
  std::vector<Axis> above = axes_above(parent);
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

// Returns the axes that a node and those above it divide, one as often as they do.
std::vector<Axis> TreeDescription::axes_above(uint32_t node) const {
  std::vector<Axis> axes;
  for (const uint32_t n : path_nodes(node))
    axes.insert(axes.end(), nodes_[n].axes.begin(), nodes_[n].axes.end());
  return axes;
}

uint32_t TreeDescription::attach(NodeDescription n) {
  const uint32_t id = static_cast<uint32_t>(nodes_.size()), parent = n.parent;
  nodes_.push_back(std::move(n));
  nodes_[parent].children.push_back(id);
  return id;
}

uint32_t TreeDescription::add_lists(uint32_t parent, std::optional<Axis> axis, int32_t max_length,
                                    int32_t chunk_cells) {
  const std::string what = fmt::format("{}.dynamic[{}]", path(parent), max_length);
  if (max_length < 1 || max_length > 1 << 30)
    refuse(fmt::format("node {}: a list's largest length is between 1 and 2^30", what));
  if (chunk_cells < 1 || (chunk_cells & (chunk_cells - 1)) != 0)
    refuse(fmt::format("node {}: chunks of {} elements; a power of two expected", what, chunk_cells));
  require_place_below(parent, what);
  const std::vector<Axis> taken = axes_above(parent);
  if (axis && std::count(taken.begin(), taken.end(), *axis) > 0)
    refuse(fmt::format("node {}: axis {} is divided above it; a dynamic node needs an axis of its own", what,
                       axis_name(*axis)));
  NodeDescription n;
  n.kind = NodeKind::kDynamic, n.parent = parent, n.extents = {max_length};
  n.num_cells = static_cast<uint64_t>(chunk_cells), n.max_length = static_cast<uint32_t>(max_length);
  return attach(std::move(n));
}

uint32_t TreeDescription::add_field(uint32_t node, std::string name, size_t bytes, size_t alignment,
                                    std::optional<Stages> stages) {
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
  if (stages && stages->last < stages->first) {
    refuse(fmt::format("temporary '{}': its stages end with {}, before they begin with {}", name,
                       stages->last, stages->first));
  }
  nodes_[node].fields.push_back(static_cast<uint32_t>(fields_.size()));
  fields_.push_back({std::move(name), node, bytes, alignment, stages});
  return static_cast<uint32_t>(fields_.size() - 1);
}

std::vector<uint32_t> TreeDescription::path_nodes(uint32_t node) const {
  std::vector<uint32_t> path;
  for (uint32_t n = node; n != 0; n = nodes_[n].parent) path.insert(path.begin(), n);
  return path;
}

std::string TreeDescription::path(uint32_t node) const {
  std::string text = options_.name;
  for (uint32_t n : path_nodes(node))
    text += fmt::format(".{}[{}]", node_kind_name(nodes_[n].kind), fmt::join(nodes_[n].extents, ","));
  return text;
}

}  // namespace coppice
