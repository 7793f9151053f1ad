// Binding a launch's handles (see binding.h).
#include "sparse/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "sparse/launch_errors.h"
#include "sparse/role_checks.h"
#include "sparse/tile_choice.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::FieldBinding;
using device::NodeKind;

namespace {

uint32_t tree_slot(Binding& b, const LaunchRequest& r, TreeStorage* tree) {
  const auto found = std::find(b.trees.begin(), b.trees.end(), tree);
  if (found != b.trees.end()) return static_cast<uint32_t>(found - b.trees.begin());
  if (b.trees.size() >= kMaxTreesPerKernel)
    refuse_launch(r, fmt::format("it touches more than {} trees", kMaxTreesPerKernel));
  b.trees.push_back(tree);
  return static_cast<uint32_t>(b.trees.size() - 1);
}

uint32_t node_slot(Binding& b, const LaunchRequest& r, TreeStorage* tree, uint32_t node) {
  const std::pair key(tree, node);
  const auto found = std::find(b.node_keys.begin(), b.node_keys.end(), key);
  if (found != b.node_keys.end()) return static_cast<uint32_t>(found - b.node_keys.begin());
  if (b.node_keys.size() >= device::kMaxNodesPerKernel)
    refuse_launch(r, fmt::format("it touches more than {} nodes", device::kMaxNodesPerKernel));
  b.node_keys.push_back(key), b.nodes.push_back(tree->layout().node_layout(node));
  return static_cast<uint32_t>(b.node_keys.size() - 1);
}

// Lets a thread gather what it appends where nobody can tell: the kernel appends to the lists of one field,
// neither it nor another handle looks at lists or takes anything away meanwhile, and none needs what lies
// above the list to be active, as a sum or an Atomic does.
void choose_gathering(const LaunchRequest& r, Binding& b) {
  constexpr uint32_t kTells = kLooksAtLists | kDeactivatesCells | kTestsCells;
  if (r.item != LaunchRequest::LoopItem::kItem || (r.effects & kTells) != 0) return;
  const auto is_list = [](const HandleUse& h) {
    return tree_of(h.id)->layout().node(h.id.node).kind == NodeKind::kDynamic;
  };
  const std::span<const HandleUse> handles(r.handles, r.num_handles);
  if (std::count_if(handles.begin(), handles.end(), is_list) != 1) return;
  const auto needs_cells = [&](const HandleUse& h) {
    return (h.role == Role::kAccumulate || h.role == Role::kAtomic) &&
           std::any_of(handles.begin(), handles.end(),
                       [&](const HandleUse& other) { return is_list(other) && other.id.tree == h.id.tree; });
  };
  if (std::any_of(handles.begin(), handles.end(), needs_cells)) return;
  for (uint32_t i = 0; i < r.num_handles; ++i)
    if (handles[i].role == Role::kAppend) b.fields[i].access |= device::kGathers;
}

// Lets a CPU's threads make sums of floats later, where they are locked instructions and nobody can tell: a
// field that is added to has no handle of another kind, so only what takes cells away could.
void choose_delays(const LaunchRequest& r, const Device& device, Binding& b) {
  if (r.item != LaunchRequest::LoopItem::kItem || (r.effects & kDeactivatesCells) != 0) return;
  if (device.name() != "cpu" || device.threads() == 1) return;
  for (uint32_t i = 0; i < r.num_handles; ++i)
    if (r.handles[i].role == Role::kAccumulate) b.fields[i].access |= device::kDelaysSums;
}

// Tells what of a block's values a kernel can have by pointer, and whether its node has the loop's cells.
uint32_t block_access(const LaunchRequest& r, const HandleUse& h) {
  const TreeLayout& tree = tree_of(h.id)->layout();
  const NodeDescription& n = tree.node(h.id.node);
  const bool is_loop_tree = tree_of(h.id) == r.loop.tree.get();
  uint32_t access = 0;
  if (is_loop_tree && n.parent == tree.node(r.loop.node).parent) access |= device::kBlockData;
  if (tree.has_neighbour_table(h.id.node)) access |= device::kNeighbourData;
  if (is_loop_tree && has_same_cells(tree.node_layout(h.id.node), tree.node_layout(r.loop.node)))
    access |= device::kSameCells;
  if (n.kind != NodeKind::kPointer && tree.field(h.id.field).stride == h.value_bytes)
    access |= device::kContiguous;
  return access;
}

// Says where a temporary's cells have their marks.
void bind_marks(const TreeLayout& tree, const TreeField& field, FieldBinding& f) {
  const TreeNode& n = tree.node(field.node);
  if (!field.is_temporary() || n.marks_stride == 0) return;
  f.mark = 1u << field.number;
  for (const uint32_t other : field.sharers) f.sharers |= 1u << tree.field(other).number;
  f.marks_offset = n.marks_offset, f.marks_stride = n.marks_stride;
}

FieldBinding bind_field(const LaunchRequest& r, const HandleUse& h, bool checks) {
  const TreeLayout& tree = tree_of(h.id)->layout();
  const TreeField& d = tree.field(h.id.field);
  if (d.bytes != h.value_bytes)
    refuse_launch(r, fmt::format("field {} has values of {} bytes, the handle's have {}", field_name(h),
                                 d.bytes, h.value_bytes));
  FieldBinding f{};
  f.offset = d.offset, f.stride = d.stride, f.value_bytes = h.value_bytes;
  f.num_values = static_cast<uint32_t>(tree.node(h.id.node).num_cells);
  f.access = block_access(r, h);
  if (checks) bind_marks(tree, d, f);
  const bool own = h.role == Role::kWrite || h.role == Role::kUpdate;
  if (is_over_blocks(r) && own && !(f.access & device::kContiguous))
    refuse_launch(
        r, fmt::format(
               "it writes field {} by data(), which needs values side by side, not those of a pointer node "
               "or an array of structs",
               field_name(h)));
  return f;
}

// Memory of another device, and nodes without cells, are told before anything is prepared.
void check_node(const LaunchRequest& r, const TreeStorage& tree, uint32_t node, const Device& device,
                std::string_view what) {
  if (&tree.device() != &device)
    refuse_launch(
        r, fmt::format("{} {}, on another device than the program", what, tree.description().path(node)));
  if (node == 0)
    refuse_launch(
        r, fmt::format("{} {}, a tree's root, which has no cells", what, tree.description().path(node)));
}

}  // namespace

Binding make_binding(const LaunchRequest& r, const Device& device, bool checks) {
  Binding b;
  if (r.loop.tree) {
    check_node(r, *r.loop.tree, r.loop.node, device, "the node looped over is");
    r.loop.tree->freeze();
    b.loop.tree = tree_slot(b, r, r.loop.tree.get());
    b.loop.node = node_slot(b, r, r.loop.tree.get(), r.loop.node);
  }
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const HandleUse& h = r.handles[i];
    TreeStorage* tree = tree_of(h.id);
    if (tree == nullptr) refuse_launch(r, fmt::format("handle {} names no field", i + 1));
    check_node(r, *tree, h.id.node, device, fmt::format("handle {} is on", i + 1));
    tree->freeze();
    FieldBinding f = h.id.field == kNoField ? FieldBinding{} : bind_field(r, h, checks);
    f.tree = tree_slot(b, r, tree);
    f.node = node_slot(b, r, tree, h.id.node);
    b.fields.push_back(f);
  }
  b.loop.box = r.box_at;
  b.loop.is_shared = device.shares_items();
  b.loop.slots = r.slot_mask, b.loop.slots_at = r.slots_at;
  check_roles(r);
  check_pairs(r, b);
  if (r.item == LaunchRequest::LoopItem::kCell) choose_tiles(r, b, checks);
  choose_gathering(r, b);
  choose_delays(r, device, b);
  if (is_over_blocks(r)) {
    b.shared_bytes = r.fast_bytes;
    b.needs_neighbours = r.loop.tree->layout().has_neighbour_table(r.loop.node);
  }
  return b;
}

void tell_uses(Binding& b, const LaunchUses& uses) {
  for (size_t i = 0; i < b.fields.size(); ++i) {
    const LaunchUse& use = uses.all[i];
    const bool changes = use.does(effect::kChanges);  // who changes a value may store one, too
    b.fields[i].uses = use.effects | (changes ? effect::kStores : 0);
    b.fields[i].reach = use.radius == LaunchUse::kAnywhere ? device::kAnyReach : use.radius;
  }
}

}  // namespace coppice
