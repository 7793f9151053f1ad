// Checks what a launch's handles are for (see role_checks.h; role_table.h says which go together).
#include "sparse/role_checks.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "sparse/binding.h"
#include "sparse/launch_errors.h"
#include "sparse/role_table.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;
using device::NodeKind;

namespace {

// Lists are appended to and read; other roles need one value per cell.
void check_list_role(const LaunchRequest& r, const HandleUse& h) {
  const bool is_list = tree_of(h.id)->layout().node(h.id.node).kind == NodeKind::kDynamic;
  if (h.role == Role::kAppend && !is_list)
    refuse_launch(r, fmt::format("it appends to field {}, which is not on a dynamic node", field_name(h)));
  const bool is_of_one_value =
      h.role == Role::kGrow || h.role == Role::kAccumulate || h.role == Role::kAtomic;
  if (is_list && h.id.field != kNoField && is_of_one_value)
    refuse_launch(r, fmt::format("field {} has lists of values; use Append, or Read", field_name(h)));
}

// Returns the layout of the tree looped over; null for a range.
const TreeLayout* loop_layout(const LaunchRequest& r) {
  return r.loop.tree ? &r.loop.tree->layout() : nullptr;
}

// Refuses a loop over something else than what the kernel's loop argument stands for.
void check_loop(const LaunchRequest& r) {
  using LoopItem = LaunchRequest::LoopItem;
  const TreeLayout* tree = loop_layout(r);
  if (r.item == LoopItem::kItem || r.item == LoopItem::kTeam) {
    if (tree == nullptr && r.place_dims == r.loop.range_dims) return;
    refuse_launch(r, r.item == LoopItem::kTeam ? "it takes a Team and loops over a range: range(n)"
                     : r.place_dims == 0       ? "it takes an Item and loops over a range: range(n)"
                     : r.place_dims == 2
                         ? "it takes an Item2 and loops over a range of two dimensions: range({nx, ny})"
                         : "it takes an Item3 and loops over a range of three: range({nx, ny, nz})");
  }
  const bool entries = r.item == LoopItem::kEntry;
  const bool lists = tree != nullptr && tree->node(r.loop.node).kind == NodeKind::kDynamic;
  if (entries && !lists)
    refuse_launch(r,
                  fmt::format("it takes an Entry and loops over a dynamic node: over(lists){}",
                              tree == nullptr ? "" : fmt::format("; {} is none", tree->path(r.loop.node))));
  if (tree == nullptr) refuse_launch(r, "it takes a Cell or Block and loops over a node: over(node)");
  if (lists && !entries)
    refuse_launch(
        r,
        fmt::format("it takes a Cell or Block, and {} is a dynamic node, which is looped over with an Entry",
                    tree->path(r.loop.node)));
}

// Refuses a field whose own cells are changed, and that has none for the item of the loop.
void check_own_cells(const LaunchRequest& r, const HandleUse& h) {
  if (r.item == LaunchRequest::LoopItem::kItem || r.item == LaunchRequest::LoopItem::kTeam)
    refuse_launch(r,
                  fmt::format("a range has no own cell to write in field {}; use Accumulate, Atomic or Grow",
                              field_name(h)));
  const TreeLayout& tree = r.loop.tree->layout();
  const bool is_loop_tree = tree_of(h.id) == r.loop.tree.get();
  if (is_loop_tree && h.id.node == r.loop.node) return;
  if (!is_over_blocks(r))
    refuse_launch(r, fmt::format("it writes field {}, which is not on the node looped over, {}",
                                 field_name(h), tree.path(r.loop.node)));
  const bool sibling = is_loop_tree && tree.node(h.id.node).parent == tree.node(r.loop.node).parent;
  if (!sibling)
    refuse_launch(r, fmt::format("it writes field {}, which is neither on {} nor beside it", field_name(h),
                                 tree.path(r.loop.node)));
}

bool is_same_field(const HandleUse& a, const HandleUse& b) {
  return a.id.tree == b.id.tree && a.id.field == b.id.field && a.id.field != kNoField;
}
RoleUse use_of(const HandleUse& h) { return {h.role, h.radius}; }

// An element that is appended has no values of temporaries, and two that share bytes have not both.
void check_temporaries(const LaunchRequest& r) {
  const std::span<const HandleUse> handles(r.handles, r.num_handles);
  const auto field_of = [](const HandleUse& h) -> const TreeField& {
    return tree_of(h.id)->layout().field(h.id.field);
  };
  for (const HandleUse& one : handles) {
    if (one.id.field == kNoField || !field_of(one).is_temporary()) continue;
    if (one.role == Role::kAppend)
      refuse_launch(r, fmt::format("it appends to field {}, which is a temporary; append to another field",
                                   field_name(one)));
    const std::vector<uint32_t>& sharers = field_of(one).sharers;
    for (const HandleUse& other : handles) {
      if (other.id.tree == one.id.tree && std::ranges::find(sharers, other.id.field) != sharers.end())
        refuse_launch(r, fmt::format("fields {} and '{}' are temporaries that share bytes: no stage has both",
                                     field_name(one), field_of(other).name));
    }
  }
}

}  // namespace

void check_roles(const LaunchRequest& r) {
  check_loop(r);
  const TreeLayout* tree = loop_layout(r);
  if (tree != nullptr && static_cast<int>(tree->dims()) != r.place_dims) {
    refuse_launch(r, fmt::format("it loops in {} dimensions, tree '{}' has {}", r.place_dims,
                                 tree->options().name, tree->dims()));
  }
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) {
    check_list_role(r, h);
    if (h.role == Role::kWrite || h.role == Role::kUpdate) check_own_cells(r, h);
  }
  check_temporaries(r);
}

void check_pairs(const LaunchRequest& r, Binding& b) {
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    for (uint32_t j = i + 1; j < r.num_handles; ++j) {
      const HandleUse &one = r.handles[i], &other = r.handles[j];
      if (!is_same_field(one, other)) continue;
      const std::string_view why = why_not_together(use_of(one), use_of(other));
      if (!why.empty()) refuse_launch(r, fmt::format("field {} {}", field_name(one), why));
      b.names_a_field_twice = true;
      if (changes_own_cells(use_of(one))) b.fields[j].access |= device::kChangedHere;
      if (changes_own_cells(use_of(other))) b.fields[i].access |= device::kChangedHere;
    }
  }
}

}  // namespace coppice
