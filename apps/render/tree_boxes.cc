// Lists containers on the device, and counts on the host what those of inner nodes hold.
#include "apps/render/tree_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "sparse/tree_storage.h"
#include "tree_boxes.kernels.h"

namespace coppice::render {
namespace {

// These are sorted by axis of the tree; layouts have (x, y, z) with leading axes that the tree lacks.
struct NodeAxes {
  explicit NodeAxes(const TreeLayout& tree, uint32_t id) {
    const device::NodeLayout& layout = tree.node_layout(id);
    const int dims = static_cast<int>(tree.dims());
    for (int axis = 0; axis < dims; ++axis) {
      const int padded = 3 - dims + axis;
      origin[axis] = layout.origin[padded];
      domain[axis] = layout.domain[padded];
      extent[axis] = static_cast<int>(layout.level[layout.depth - 1].extent[padded]);
    }
  }
  Vec3d origin = Vec3d::Zero(), domain = Vec3d::Ones();  // cells of the node
  Vec3i extent = Vec3i::Zero();                          // of a container
};

TreeLevel describe(const TreeLayout& tree, uint32_t id, const NodeAxes& leaf,
                   const VolumePlacement& placement) {
  const NodeAxes node(tree, id);
  TreeLevel level;
  level.extent = node.extent;
  level.name = node_kind_name(tree.node(id).kind);
  for (uint32_t axis = 0; axis < tree.dims(); ++axis)
    level.name += fmt::format("{}{}", axis == 0 ? " " : " x ", node.extent[static_cast<int>(axis)]);
  level.capacity = tree.node(id).num_cells;
  // All nodes of a tree divide the same domain.
  const Vec3d leaf_cells = leaf.domain.cwiseQuotient(node.domain),
              cell_m = leaf_cells * double(placement.cell_m);
  level.cell_m = cell_m.cast<float>();
  level.low_m = (placement.origin_m.cast<double>() + leaf.origin * double(placement.cell_m) -
                 node.origin.cwiseProduct(cell_m))
                    .cast<float>();
  return level;
}

bool comes_before(const TreeBox& a, const TreeBox& b) {
  return std::lexicographical_compare(a.low, a.low + 3, b.low, b.low + 3);
}

// Each container of a child stands for an active cell of its parent.
void count_children(const TreeLevel& child, const Vec3i& child_origin, TreeLevel& parent,
                    const Vec3i& parent_origin) {
  const auto down = [](int value, int by) { return by == 0 ? 0 : value / by; };
  TreeBox* last = nullptr;  // neighbours in the list mostly have the same parent
  for (const TreeBox& box : child.boxes) {
    TreeBox wanted{};
    for (int axis = 0; axis < 3; ++axis) {
      const int cell =
          down(box.low[axis] - child_origin[axis], child.extent[axis]);  // of the parent, from 0 on
      const int extent = parent.extent[axis];
      wanted.low[axis] = parent_origin[axis] + down(cell, extent) * extent;
    }
    if (last == nullptr || !std::equal(wanted.low, wanted.low + 3, last->low)) {
      const auto found = std::lower_bound(parent.boxes.begin(), parent.boxes.end(), wanted, comes_before);
      if (found == parent.boxes.end()) continue;
      last = &*found;
    }
    ++last->live;
  }
}

}  // namespace

Aabb3f TreeLevel::bounds_of(const TreeBox& box) const {
  const Vec3f low(static_cast<float>(box.low[0]), static_cast<float>(box.low[1]),
                  static_cast<float>(box.low[2]));
  Aabb3f bounds;
  bounds.min = low_m + low.cwiseProduct(cell_m);
  bounds.max = low_m + (low + extent.cast<float>()).cwiseProduct(cell_m);
  return bounds;
}

TreeBoxPacker::TreeBoxPacker(IntrusivePtr<Device> device, uint64_t most_boxes)
    : device_(std::move(device)), program_(device_), most_boxes_(most_boxes) {}

void TreeBoxPacker::list_containers(const Node& node, bool counts_cells, TreeLevel& level) {
  level.boxes.clear();
  if (level.total == 0 || level.total > most_boxes_) return;
  level.boxes.resize(level.total);
  const size_t bytes = level.boxes.size() * sizeof(TreeBox);
  if (!boxes_ || boxes_->size_bytes() < bytes) {
    boxes_.reset();
    boxes_ = device_->reserve(bytes + bytes / 2, bytes + bytes / 2);
  }
  auto* const out = boxes_->as<TreeBox>();
  const ContainerExtent extent{
      {std::max(level.extent[0], 1), std::max(level.extent[1], 1), std::max(level.extent[2], 1)}};
  const auto topology = node.topology();
  const auto launch = [&](const auto& lists, const auto& counts) {
    if (counts_cells)
      program_.launch(counts, over(node), topology, extent, out);
    else
      program_.launch(lists, over(node), topology, out);
  };
  const uint32_t dims = node.storage().layout().dims();
  if (dims == 1) launch(list_boxes_1, count_boxes_1);
  if (dims == 2) launch(list_boxes_2, count_boxes_2);
  if (dims == 3) launch(list_boxes_3, count_boxes_3);
  program_.wait();
  device_->wait_copy(level.boxes.data(), out, bytes);
}

void TreeBoxPacker::wait_pack(const Node& node, const VolumePlacement& placement, TreeBoxes& boxes) {
  const TreeStorage& storage = node.storage();
  if (&storage.device() != device_.get())
    throw Error(ErrorCode::kInvalidArgument, "a tree's boxes are packed on the tree's device");
  if (node.id() == 0 || storage.description().node(node.id()).kind == device::NodeKind::kDynamic)
    throw Error(ErrorCode::kInvalidArgument,
                node.path() + ": boxes are those of a dense, bitmasked or pointer node");
  const uint64_t version = node.wait_topology_version();  // before anything is packed: later changes are news
  const TreeLayout& tree = storage.layout();
  const std::vector<uint32_t> way = tree.path_nodes(node.id());
  // Bits of a bitmasked node's masks may come and go without a new list.
  const bool has_masks = std::ranges::any_of(
      way, [&](uint32_t id) { return tree.node(id).kind == device::NodeKind::kBitmasked; });
  const bool is_same = boxes.node == node.id() && boxes.tree == storage.serial() &&
                       boxes.version == version && boxes.placement.cell_m == placement.cell_m &&
                       boxes.placement.origin_m == placement.origin_m;
  if (!has_masks && is_same) return;
  boxes.node = 0;  // until all of it is there
  boxes.levels.resize(way.size());
  const NodeAxes leaf(tree, node.id());
  for (size_t i = 0; i < way.size(); ++i) {
    std::vector<TreeBox> memory = std::move(boxes.levels[i].boxes);
    boxes.levels[i] = describe(tree, way[i], leaf, placement);
    boxes.levels[i].boxes = std::move(memory);
    boxes.levels[i].total = detail::node_of(node.tree(), way[i]).wait_num_active_blocks();
  }
  for (size_t i = way.size(); i-- > 0;) {
    TreeLevel& level = boxes.levels[i];
    const bool is_dense = tree.node(way[i]).kind == device::NodeKind::kDense;
    const bool has_children = i + 1 < way.size() && boxes.levels[i + 1].total <= most_boxes_;
    list_containers(detail::node_of(node.tree(), way[i]), !is_dense && !has_children, level);
    if (is_dense) {
      for (TreeBox& box : level.boxes) box.live = static_cast<uint32_t>(level.capacity);
    } else if (has_children) {
      count_children(boxes.levels[i + 1], NodeAxes(tree, way[i + 1]).origin.cast<int>(), level,
                     NodeAxes(tree, way[i]).origin.cast<int>());
    }
    level.live = 0;
    for (const TreeBox& box : level.boxes) level.live += box.live;
  }
  boxes.tree = storage.serial(), boxes.version = version;
  boxes.node = node.id(), boxes.placement = placement;
}

}  // namespace coppice::render
