// Loops over the cells of a node or of a box, and ranges of several dimensions (loop.h): what is checked, and
// the activation before a loop over a box.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "runtime_box.kernels.h"
#include "sparse/device/box.h"
#include "sparse/launch_errors.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::kMaxDims;
using device::LoopBox;
using device::NodeKind;
using device::NodeLayout;

namespace {

// A box may meet this many containers at most: far more than there are cells in any memory.
constexpr uint64_t kMostContainers = uint64_t{1} << 40;

std::string text_of(const NodeLayout& layout, const LoopBox& box) {
  std::string text;
  for (uint32_t d = kMaxDims - layout.dims; d < kMaxDims; ++d)
    text += fmt::format("{}[{}, {})", text.empty() ? "" : " x ", box.low[d], box.high[d]);
  return text;
}

bool is_inside(const NodeLayout& layout, const LoopBox& box) {
  for (int d = 0; d < kMaxDims; ++d) {
    const int64_t low = layout.origin[d];
    if (box.low[d] < low || box.high[d] > low + layout.domain[d]) return false;
  }
  return true;
}

// Returns whether cells of the node can be inactive.
bool can_be_inactive(const NodeLayout& layout) {
  return std::any_of(layout.level, layout.level + layout.depth,
                     [](const device::LevelLayout& level) { return level.kind != NodeKind::kDense; });
}

uint64_t count_containers(const TreeLayout& tree, uint32_t node, const LoopBox& box) {
  uint64_t n = 1;
  const device::BoxContainers containers = containers_in(tree.node_layout(node), box);
  for (const uint32_t count : containers.count) {
    if (count <= kMostContainers / n) {
      n *= count;
      continue;
    }
    throw Error(ErrorCode::kOutOfMemory, fmt::format("over_box: the box {} meets too many containers of {}",
                                                     text_of(tree.node_layout(node), box), tree.path(node)));
  }
  return n;
}

TreeStorage& tree_of(const Node& node, const char* call) {
  if (node.tree()) return node.storage();
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: the node was moved from, and names no tree", call));
}

}  // namespace

Loop over(const Node& node) {
  tree_of(node, "over(node)");
  return {node.tree(), node.id()};
}

Loop range_on_device(const uint64_t* count) {
  if (count == nullptr)
    throw Error(ErrorCode::kInvalidArgument, "range_on_device(count): the count's address is null");
  return {{}, 0, 0, 0, count};
}

Loop range(const detail::GivenCoord& low, const detail::GivenCoord& high) {
  const uint32_t dims = high.count == 0 ? kMaxDims : high.count;
  if (dims < 2 || (low.count == 0 ? uint32_t{kMaxDims} : low.count) != dims)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("range(low, high): both are of two or of three numbers, not of {} and {}",
                            low.count, high.count));
  Loop loop;
  loop.range_dims = static_cast<int>(dims);
  LoopBox& box = loop.box.emplace(LoopBox{{0, 0, 0}, {1, 1, 1}});
  loop.count = 1;
  for (uint32_t axis = 0; axis < dims; ++axis) {
    box.low[kMaxDims - dims + axis] = low.at[axis];
    box.high[kMaxDims - dims + axis] = high.at[axis];
  }
  for (int d = 0; d < kMaxDims; ++d) {
    const int64_t n = std::max<int64_t>(0, int64_t{box.high[d]} - box.low[d]);
    if (n != 0 && loop.count > (uint64_t{1} << 62) / static_cast<uint64_t>(n))
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("range: [{}, {}) x [{}, {}) x [{}, {}) has more than 2^62 items", box.low[0],
                              box.high[0], box.low[1], box.high[1], box.low[2], box.high[2]));
    loop.count *= static_cast<uint64_t>(n);
  }
  return loop;
}

Loop range(const detail::GivenCoord& high) {
  detail::GivenCoord zero(detail::HostCoord{});
  zero.count = high.count;
  return range(zero, high);
}

Loop over_box(const Node& node, const detail::GivenCoord& low, const detail::GivenCoord& high) {
  TreeStorage& storage = tree_of(node, "over_box(node, low, high)");
  detail::check_count(storage, low);
  detail::check_count(storage, high);
  const TreeLayout& tree = storage.layout();
  if (node.id() == 0 || tree.node(node.id()).kind == NodeKind::kDynamic)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("over_box: {} is {}; a box is of the cells of a pointer, bitmasked or dense node",
                            node.path(), node.id() == 0 ? "a root" : "a dynamic node"));
  const NodeLayout& layout = tree.node_layout(node.id());
  Loop loop = over(node);
  LoopBox& box = loop.box.emplace(LoopBox{{0, 0, 0}, {1, 1, 1}});
  const uint32_t dims = tree.dims();
  bool is_empty = false;
  for (uint32_t axis = 0; axis < dims; ++axis) {
    box.low[kMaxDims - dims + axis] = low.at[axis];
    box.high[kMaxDims - dims + axis] = high.at[axis];
    is_empty |= high.at[axis] <= low.at[axis];
  }
  if (is_empty)
    box = LoopBox{};
  else if (!is_inside(layout, box))
    throw Error(ErrorCode::kOutOfRange, fmt::format("over_box: the box {} of {} is not within the domain {}",
                                                    text_of(layout, box), node.path(), domain_text(layout)));
  return loop;
}

namespace detail {

void add_box(LaunchRequest& request, size_t& at) {
  at = device::align_up(at, alignof(LoopBox));
  const bool has_room = at + sizeof(LoopBox) <= kLaunchArgumentBytes;
  if (!request.loop.tree && !has_room)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "kernel {}.{}: over a range of {} dimensions it takes at most {} bytes of plain arguments",
            request.file->name, request.name, request.loop.range_dims,
            kLaunchArgumentBytes - sizeof(LoopBox)));
  if (request.loop.tree && (request.item != LaunchRequest::LoopItem::kCell || !has_room))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("kernel {}.{}: over_box() is for a kernel that takes a Cell, and at most {} bytes of "
                    "plain arguments",
                    request.file->name, request.name, kLaunchArgumentBytes - sizeof(LoopBox)));
  std::memcpy(request.arguments + at, &*request.loop.box, sizeof(LoopBox));
  request.box_at = static_cast<uint32_t>(at) + 1;
  at += sizeof(LoopBox);
}

}  // namespace detail

// The box's cells are activated when the launch's turn comes, before its list is made, and in its name. That
// is a launch of its own, which may be repeated as it grows, and which makes room for this one: a recording
// skips this one where it ran out of cells.
void Program::activate_box_first(Launch& launch, const detail::LaunchRequest& r) {
  const LoopBox& box = *r.loop.box;
  const Node node = detail::node_of(r.loop.tree, r.loop.node);
  const bool is_empty = box.high[kMaxDims - 1] <= box.low[kMaxDims - 1];
  const TreeLayout& tree = node.storage().layout();
  if (is_empty || !can_be_inactive(tree.node_layout(node.id()))) return;
  const auto n = static_cast<int64_t>(count_containers(tree, node.id(), box));
  detail::LaunchRequest activation = detail::make_request(activate_box, range(n), node.topology(), box);
  activation.makes_room_for = &r;
  auto prepared = std::make_shared<Launch>(prepare(activation));
  prepared->skip_on_status = false;
  prepared->grain = 64;
  launch.make_room = [prepared, make_list = std::move(launch.before_loop),
                      make_room = std::move(launch.make_room)](InStream& s, LaunchBlock& block) {
    Launch now = *prepared;
    now.block.number = block.number;
    s.run(now);
    make_list(s, block);
    block.flags |= kNeedsRoom;
    if (make_room) make_room(s, block);
  };
  launch.before_loop = nullptr;
}

}  // namespace coppice
