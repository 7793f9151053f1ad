// Binding a launch's handles, and checking their roles (see binding.h).
#include "sparse/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/error.h"
#include "sparse/launch_errors.h"
#include "sparse/role_table.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::FieldBinding;
using device::NodeKind;

namespace {

[[noreturn]] void refuse(const LaunchRequest& r, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("kernel {}: {}", kernel_id(r), why));
}

uint32_t tree_slot(Binding& b, const LaunchRequest& r, TreeStorage* tree) {
  const auto found = std::find(b.trees.begin(), b.trees.end(), tree);
  if (found != b.trees.end()) return static_cast<uint32_t>(found - b.trees.begin());
  if (b.trees.size() >= kMaxTreesPerKernel)
    refuse(r, fmt::format("it touches more than {} trees", kMaxTreesPerKernel));
  b.trees.push_back(tree);
  return static_cast<uint32_t>(b.trees.size() - 1);
}

uint32_t node_slot(Binding& b, const LaunchRequest& r, TreeStorage* tree, uint32_t node) {
  const std::pair key(tree, node);
  const auto found = std::find(b.node_keys.begin(), b.node_keys.end(), key);
  if (found != b.node_keys.end()) return static_cast<uint32_t>(found - b.node_keys.begin());
  if (b.node_keys.size() >= device::kMaxNodesPerKernel)
    refuse(r, fmt::format("it touches more than {} nodes", device::kMaxNodesPerKernel));
  b.node_keys.push_back(key), b.nodes.push_back(tree->layout(node));
  return static_cast<uint32_t>(b.node_keys.size() - 1);
}

// Lists are appended to and read; other roles need one value per cell.
void check_list_role(const LaunchRequest& r, const HandleUse& h) {
  const bool is_list = tree_of(h.id)->node(h.id.node).kind == NodeKind::kDynamic;
  if (h.role == Role::kAppend && !is_list)
    refuse(r, fmt::format("it appends to field {}, which is not on a dynamic node", field_name(h)));
  if (is_list && h.id.field != kNoField && (h.role == Role::kGrow || h.role == Role::kAccumulate))
    refuse(r, fmt::format("field {} has lists of values; use Append, or Read", field_name(h)));
}

// Refuses a loop over something else than what the kernel's loop argument stands for.
void check_loop(const LaunchRequest& r) {
  using LoopItem = LaunchRequest::LoopItem;
  TreeStorage* tree = r.loop.tree.get();
  if (r.item == LoopItem::kItem || r.item == LoopItem::kTeam) {
    if (tree == nullptr) return;
    refuse(r, fmt::format("it takes {} and loops over a range: range(n)",
                          r.item == LoopItem::kItem ? "an Item" : "a Team"));
  }
  const bool entries = r.item == LoopItem::kEntry;
  const bool lists = tree != nullptr && tree->node(r.loop.node).kind == NodeKind::kDynamic;
  if (entries && !lists)
    refuse(r, fmt::format("it takes an Entry and loops over a dynamic node: over(lists){}",
                          tree == nullptr ? "" : fmt::format("; {} is none", tree->path(r.loop.node))));
  if (tree == nullptr) refuse(r, "it takes a Cell or Block and loops over a node: over(node)");
  if (lists && !entries)
    refuse(r, fmt::format(
                  "it takes a Cell or Block, and {} is a dynamic node, which is looped over with an Entry",
                  tree->path(r.loop.node)));
}

void check_roles(const LaunchRequest& r) {
  TreeStorage* loop_tree = r.loop.tree.get();
  using LoopItem = LaunchRequest::LoopItem;
  const bool cells = r.item == LoopItem::kCell, blocks = is_over_blocks(r);
  check_loop(r);
  if (loop_tree != nullptr && static_cast<int>(loop_tree->dims()) != r.place_dims) {
    refuse(r, fmt::format("it loops in {} dimensions, tree '{}' has {}", r.place_dims,
                          loop_tree->options().name, loop_tree->dims()));
  }
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const HandleUse& h = r.handles[i];
    const bool own = h.role == Role::kWrite || h.role == Role::kUpdate;
    check_list_role(r, h);
    if (h.role == Role::kGrow || h.role == Role::kAccumulate || h.role == Role::kAppend) continue;
    const bool same_node = tree_of(h.id) == loop_tree && h.id.node == r.loop.node;
    if ((cells || r.item == LoopItem::kEntry) && own && !same_node)
      refuse(r, fmt::format("it writes field {}, which is not on the node looped over, {}", field_name(h),
                            loop_tree->path(r.loop.node)));
    if ((r.item == LoopItem::kItem || r.item == LoopItem::kTeam) && own)
      refuse(r, fmt::format("a range has no own cell to write in field {}; use Accumulate or Grow",
                            field_name(h)));
    if (blocks && own && !same_node) {
      const bool sibling = tree_of(h.id) == loop_tree &&
                           loop_tree->node(h.id.node).parent == loop_tree->node(r.loop.node).parent;
      if (!sibling)
        refuse(r, fmt::format("it writes field {}, which is neither on {} nor beside it", field_name(h),
                              loop_tree->path(r.loop.node)));
    }
  }
}

bool is_same_field(const HandleUse& a, const HandleUse& b) {
  return a.id.tree == b.id.tree && a.id.field == b.id.field && a.id.field != kNoField;
}
RoleUse use_of(const HandleUse& h) { return {h.role, h.radius}; }

// Refuses two handles of one field that do not go together. A field that its own cells change is marked, so
// that reading others of it is an error.
void check_pairs(const LaunchRequest& r, Binding& b) {
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    for (uint32_t j = i + 1; j < r.num_handles; ++j) {
      const HandleUse &one = r.handles[i], &other = r.handles[j];
      if (!is_same_field(one, other)) continue;
      const std::string_view why = why_not_together(use_of(one), use_of(other));
      if (!why.empty()) refuse(r, fmt::format("field {} {}", field_name(one), why));
      b.names_a_field_twice = true;
      if (changes_own_cells(use_of(one))) b.fields[j].access |= device::kChangedHere;
      if (changes_own_cells(use_of(other))) b.fields[i].access |= device::kChangedHere;
    }
  }
}

// Chooses which handles get tiles and whether rows are blended: both need the storage to suffice. Blending
// drops what it computes of inactive cells, but a check could not drop its complaints.
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

// Lets a thread gather what it appends where nobody can tell: the kernel appends to the lists of one field,
// neither it nor another handle looks at lists or takes anything away meanwhile, and none needs what lies
// above the list to be active, as a sum does.
void choose_gathering(const LaunchRequest& r, Binding& b) {
  constexpr uint32_t kTells = kLooksAtLists | kDeactivatesCells | kTestsCells;
  if (r.item != LaunchRequest::LoopItem::kItem || (r.effects & kTells) != 0) return;
  const auto is_list = [](const HandleUse& h) {
    return tree_of(h.id)->node(h.id.node).kind == NodeKind::kDynamic;
  };
  const std::span<const HandleUse> handles(r.handles, r.num_handles);
  if (std::count_if(handles.begin(), handles.end(), is_list) != 1) return;
  const auto adds = [&](const HandleUse& h) {
    return h.role == Role::kAccumulate &&
           std::any_of(handles.begin(), handles.end(),
                       [&](const HandleUse& other) { return is_list(other) && other.id.tree == h.id.tree; });
  };
  if (std::any_of(handles.begin(), handles.end(), adds)) return;
  for (uint32_t i = 0; i < r.num_handles; ++i)
    if (handles[i].role == Role::kAppend) b.fields[i].access |= device::kGathers;
}

// Tells what of a block's values a kernel can have by pointer, and whether its node has the loop's cells.
uint32_t block_access(const LaunchRequest& r, const HandleUse& h) {
  TreeStorage* tree = tree_of(h.id);
  const NodeDescription& n = tree->node(h.id.node);
  uint32_t access = 0;
  if (tree == r.loop.tree.get() && n.parent == tree->node(r.loop.node).parent) access |= device::kBlockData;
  if (tree->has_neighbour_table(h.id.node)) access |= device::kNeighbourData;
  if (tree == r.loop.tree.get() && has_same_cells(tree->layout(h.id.node), tree->layout(r.loop.node)))
    access |= device::kSameCells;
  if (n.kind != NodeKind::kPointer && tree->field(h.id.field).stride == h.value_bytes)
    access |= device::kContiguous;
  return access;
}

FieldBinding bind_field(const LaunchRequest& r, const HandleUse& h) {
  TreeStorage* tree = tree_of(h.id);
  const FieldDescription& d = tree->field(h.id.field);
  if (d.bytes != h.value_bytes)
    refuse(r, fmt::format("field {} has values of {} bytes, the handle's have {}", field_name(h), d.bytes,
                          h.value_bytes));
  FieldBinding f{};
  f.offset = d.offset, f.stride = d.stride, f.value_bytes = h.value_bytes;
  f.num_values = static_cast<uint32_t>(tree->node(h.id.node).num_cells);
  f.access = block_access(r, h);
  const bool own = h.role == Role::kWrite || h.role == Role::kUpdate;
  if (is_over_blocks(r) && own && !(f.access & device::kContiguous))
    refuse(r,
           fmt::format(
               "it writes field {} by data(), which needs values side by side, not those of a pointer node "
               "or an array of structs",
               field_name(h)));
  return f;
}

// Memory of another device, and nodes without cells, are told before anything is prepared.
void check_node(const LaunchRequest& r, const TreeStorage& tree, uint32_t node, const Device& device,
                std::string_view what) {
  if (&tree.device() != &device)
    refuse(r, fmt::format("{} {}, on another device than the program", what, tree.path(node)));
  if (node == 0) refuse(r, fmt::format("{} {}, a tree's root, which has no cells", what, tree.path(node)));
}

}  // namespace

std::string kernel_id(const LaunchRequest& r) { return fmt::format("{}.{}", r.file->name, r.name); }

bool is_over_blocks(const LaunchRequest& r) {
  return r.item == LaunchRequest::LoopItem::kBlock || r.item == LaunchRequest::LoopItem::kBlockTeam;
}

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
    if (tree == nullptr) refuse(r, fmt::format("handle {} names no field", i + 1));
    check_node(r, *tree, h.id.node, device, fmt::format("handle {} is on", i + 1));
    tree->freeze();
    FieldBinding f = h.id.field == kNoField ? FieldBinding{} : bind_field(r, h);
    f.tree = tree_slot(b, r, tree);
    f.node = node_slot(b, r, tree, h.id.node);
    b.fields.push_back(f);
  }
  b.loop.box = r.box_at;
  check_roles(r);
  check_pairs(r, b);
  if (r.item == LaunchRequest::LoopItem::kCell) choose_tiles(r, b, checks);
  choose_gathering(r, b);
  if (is_over_blocks(r)) {
    b.shared_bytes = r.fast_bytes;
    b.needs_neighbours = r.loop.tree->has_neighbour_table(r.loop.node);
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
