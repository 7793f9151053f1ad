// Launches over trees that are cut over ranks (see cut_launch.h).
#include "sparse/ranks/cut_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gpu/in_stream.h"
#include "gpu/launch_uses.h"
#include "sparse/device/layout.h"
#include "sparse/ranks/tree_cut.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::LaunchRequest;

namespace {

bool is_cut(const TreeStorage* tree) { return tree != nullptr && tree->is_over_ranks(); }
TreeStorage* tree_of(const LaunchUse& use) { return static_cast<TreeStorage*>(use.tree); }

// The trees of a launch that are cut, each once, in the same order on all ranks.
std::vector<TreeStorage*> cut_trees(const LaunchRequest& r) {
  std::vector<TreeStorage*> trees;
  const auto add = [&](TreeStorage* tree) {
    if (is_cut(tree) && std::ranges::find(trees, tree) == trees.end()) trees.push_back(tree);
  };
  add(r.loop.tree.get());
  for (uint32_t i = 0; i < r.num_handles; ++i) add(coppice::tree_of(r.handles[i].id));
  return trees;
}

void check_loop(const LaunchRequest& r) {
  TreeStorage* const tree = r.loop.tree.get();
  if (!is_cut(tree)) return;
  if (r.loop.box) refuse_launch(r, "loops over a box of a tree that is cut over ranks; loop over its node");
  if (!tree->cut().is_below(r.loop.node))
    refuse_launch(
        r, fmt::format("loops over {}, and tree '{}' is cut over ranks: the nodes right below the last "
                       "pointer node can be looped over",
                       tree->layout().path(r.loop.node), tree->options().name));
}

// Accumulate's sums go home behind the launch; those of a Grow activate on the way, wherever they are.
bool is_sum(const LaunchUse& use) { return use.role == "Accumulate" && use.does(effect::kAdds); }

template <class F>
void check_sum(const LaunchRequest& r, const LaunchUse& use, F refuse) {
  if (!r.loop.tree && !r.loop.is_own)
    refuse(
        "a loop over a range adds to active cells, which may be active elsewhere; own_range() adds to those "
        "that are here, and Grow<T>::add() activates");
  if (r.loop.tree && use.radius == LaunchUse::kAnywhere)
    refuse(
        "it is added to by coordinate, which may be anywhere; an Accumulate<T, Box<n>> adds around a cell, "
        "and own_range() to cells that are here");
  if (r.loop.tree && r.loop.tree.get() != tree_of(use))
    refuse("the loop is over another tree, whose parts are others");
  const TreeCut& cut = tree_of(use)->cut();
  if (use.radius > cut.most_reach(use.node))
    refuse(fmt::format("it is added to {} cells away, and others' cells are here as far as {}", use.radius,
                       cut.most_reach(use.node)));
}

// Returns what a launch adds to cells around its own in a tree.
std::vector<TreeCut::Sum> sums_in(const LaunchRequest& r, const LaunchUses& uses, const TreeStorage* tree) {
  std::vector<TreeCut::Sum> sums;
  for (uint32_t i = 0; i < r.num_handles; ++i) {
    const LaunchUse& use = uses.all[i];
    if (tree_of(use) != tree || !is_sum(use)) continue;
    // Sums would go to blocks that are here for this launch alone, or would be home before it is known there
    // that their cell is active.
    if (uses.does_to(tree, effect::kActivates))
      refuse_launch(
          r, fmt::format("{}, and tree '{}' is cut over ranks: the launch activates cells of the tree, "
                         "too, and adds to what may be active here alone; use two launches",
                         use.name, tree->options().name));
    if (r.handles[i].sum == device::SumKind::kMixed)
      refuse_launch(r, fmt::format("{}, and tree '{}' is cut over ranks: sums of numbers of several types do "
                                   "not go from rank to rank",
                                   use.name, tree->options().name));
    if (std::ranges::find(sums, use.field, &TreeCut::Sum::field) == sums.end())
      sums.push_back({use.field, r.handles[i].sum});
  }
  return sums;
}

// Refuses what a launch does to cells that may be other ranks'.
void check_use(const LaunchRequest& r, const LaunchUse& use) {
  TreeStorage* const tree = tree_of(use);
  TreeStorage* const looped = is_cut(r.loop.tree.get()) ? r.loop.tree.get() : nullptr;
  constexpr uint32_t kChangesAny =
      effect::kStores | effect::kAdds | effect::kChanges | effect::kChangesTopology;
  if (tree != nullptr && !is_cut(tree) && looped != nullptr && use.does(kChangesAny))
    refuse_launch(
        r, fmt::format("{}: its tree '{}' is each rank's own, and the loop is over tree '{}', which is "
                       "cut over ranks: each rank would change it by its own cells",
                       use.name, tree->options().name, looped->options().name));
  if (!is_cut(tree)) return;
  if (looped != nullptr && !(tree->cut().cluster() == looped->cut().cluster()))
    refuse_launch(r, fmt::format("{}: trees '{}' and '{}' are cut over different clusters", use.name,
                                 tree->options().name, looped->options().name));
  const auto refuse = [&](const std::string& why) {
    refuse_launch(
        r, fmt::format("{}, and tree '{}' is cut over ranks: {}", use.name, tree->options().name, why));
  };
  const bool is_anywhere = use.radius == LaunchUse::kAnywhere && !use.in_neighbours;
  if (use.does(effect::kReads) && is_anywhere && !r.loop.is_own)
    refuse("it is read by coordinate, which only a cell's owner can; a Read<T, Box<n>> reads around a cell");
  if (use.does(effect::kReads) && !r.loop.tree && !r.loop.is_own)
    refuse("a loop over a range reads it, whose cells are not all here; loop over the node, or own_range()");
  const bool changes = use.does(effect::kStores | effect::kAdds | effect::kChanges);
  if (r.loop.is_own && !is_sum(use) && changes)
    refuse("a loop over a rank's own items stores to cells, which may be another rank's");
  if (use.does(effect::kReads) && use.radius > tree->cut().most_reach(use.node))
    refuse(fmt::format("it is read {} cells away, and others' cells are here as far as {}", use.radius,
                       tree->cut().most_reach(use.node)));
  if (use.does(effect::kTests))
    refuse("the launch asks which cells are active, which only their owner can tell");
  if (use.does(effect::kDeactivates))
    refuse("the launch deactivates cells; Node::deactivate() does, on all ranks");
  if (is_sum(use)) return check_sum(r, use, refuse);
  if (changes && use.radius != 0 && r.loop.tree)
    refuse("the launch changes other cells than its own, which may be another rank's");
  if (use.does(effect::kChanges) && !r.loop.tree)
    refuse("a loop over a range changes it in place, which all ranks would");
}

}  // namespace

bool is_over_ranks(const LaunchRequest& r) {
  if (is_cut(r.loop.tree.get())) return true;
  for (uint32_t i = 0; i < r.num_handles; ++i)
    if (is_cut(coppice::tree_of(r.handles[i].id))) return true;
  return false;
}

void check_over_ranks(const LaunchRequest& r, const LaunchUses& uses) {
  check_loop(r);
  for (const LaunchUse& use : uses.all) check_use(r, use);
  for (TreeStorage* const tree : cut_trees(r)) sums_in(r, uses, tree);
}

namespace {

// Notes what the launch leaves to be brought up to date.
void note_launch(const LaunchUses& uses) {
  for (const LaunchUse& use : uses.all) {
    TreeStorage* const tree = tree_of(use);
    if (!is_cut(tree)) continue;
    if (use.does(effect::kChangesTopology)) tree->cut().note_topology_change();
    if (use.kind == LaunchUse::Kind::kField && use.does(effect::kStores | effect::kChanges | effect::kAdds))
      tree->cut().note_stores(use.field);
  }
}

// Returns the fields of a tree whose uses are such, each once.
template <class F>
std::vector<uint32_t> fields_where(const LaunchUses& uses, const TreeStorage* tree, F is_such) {
  std::vector<uint32_t> fields;
  for (const LaunchUse& use : uses.all)
    if (use.tree == tree && use.kind == LaunchUse::Kind::kField && is_such(use) &&
        std::ranges::find(fields, use.field) == fields.end())
      fields.push_back(use.field);
  return fields;
}

std::vector<uint32_t> read_around(const LaunchUses& uses, const TreeStorage* tree) {
  return fields_where(uses, tree,
                      [](const LaunchUse& use) { return use.does(effect::kReads) && use.radius != 0; });
}

// Returns the fields that the launch stores to and that are worth to be packed ahead. What it adds to is
// whole only when sums have come home.
std::vector<uint32_t> stored_ahead(const LaunchUses& uses, TreeStorage* tree) {
  std::vector<uint32_t> fields = fields_where(
      uses, tree, [&](const LaunchUse& use) { return use.does(effect::kStores | effect::kChanges); });
  for (const LaunchUse& use : uses.all)
    if (use.tree == tree && use.does(effect::kAdds)) std::erase(fields, use.field);
  std::erase_if(fields, [&](uint32_t field) { return !tree->cut().wants_ahead(field); });
  return fields;
}

enum class Part : uint8_t { kInterior, kBorder };

// Returns the launch for the blocks of one part of its loop's list (OwnPart).
Launch part_of(const Launch& whole, const detail::LaunchRequest& r, Part part, bool goes_on) {
  Launch launch = whole;
  launch.goes_on = goes_on;
  launch.before_loop = [tree = r.loop.tree, node = r.loop.node, part, make_list = whole.before_loop](
                           InStream& s, LaunchBlock& block) {
    make_list(s, block);
    const LoopList& list = *tree->lists().all()[node];
    const bool is_interior = part == Part::kInterior;
    const uint64_t first = is_interior ? 0 : list.interior, end = is_interior ? list.interior : list.items;
    const uint32_t dims = tree->layout().dims(), around = dims == 3 ? 27 : dims == 2 ? 9 : 3;
    block.elements = static_cast<const device::LoopElement*>(block.elements) + first;
    if (block.neighbours != nullptr) block.neighbours += first * around;
    block.count = nullptr, block.item_count = loop_items(block, end - first);
    block.loop_begin = static_cast<int64_t>(first);
  };
  return launch;
}

}  // namespace

AsyncValueRef<Chain> give_over_ranks(const LaunchRequest& r, Launch launch, Stream& stream) {
  const IntrusivePtr<const LaunchUses> uses = launch.uses;
  const std::vector<TreeStorage*> trees = cut_trees(r);
  for (TreeStorage* const tree : trees) tree->cut().wait_sync(*tree);
  // The lists of a launch that changes the topology are others for a second part of it.
  TreeStorage* const looped = is_cut(r.loop.tree.get()) ? r.loop.tree.get() : nullptr;
  const bool has_parts =
      looped != nullptr && looped->cut().cluster().n_ranks() > 1 && !uses->does(effect::kChangesTopology);
  for (TreeStorage* const tree : trees)
    if (tree != looped || !has_parts) tree->cut().wait_fresh(*tree, read_around(*uses, tree));
  note_launch(*uses);
  std::vector<std::pair<TreeStorage*, std::vector<TreeCut::Sum>>> added;
  for (TreeStorage* const tree : trees)
    if (auto sums = sums_in(r, *uses, tree); !sums.empty()) added.emplace_back(tree, std::move(sums));
  for (const auto& [tree, sums] : added)
    tree->cut().wait_agreed([&, cut = tree] { cut->cut().wait_clear_mirrors(*cut, sums); });

  AsyncValueRef<Chain> first, done;
  const std::vector<uint32_t> around = has_parts ? read_around(*uses, looped) : std::vector<uint32_t>(),
                              ahead = has_parts ? stored_ahead(*uses, looped) : std::vector<uint32_t>();
  if (!around.empty() && looped->cut().is_any_stale(around)) {
    try {
      looped->cut().wait_fresh(*looped, around,
                               [&] { first = stream.launch(part_of(launch, r, Part::kInterior, false)); });
    } catch (...) {
      // Nobody else knows of the part that was given, and what it uses may go when this is thrown.
      if (first) wait(first);
      throw;
    }
    note_launch(*uses);  // once more: mirrors are as they were before what the launch stores
    done = stream.launch(part_of(launch, r, Part::kBorder, true));
  } else if (!ahead.empty()) {
    first = stream.launch(part_of(launch, r, Part::kBorder, false));
    looped->cut().wait_pack_ahead(*looped, ahead);
    done = stream.launch(part_of(launch, r, Part::kInterior, true));
  } else {
    done = stream.launch(std::move(launch));
  }
  for (const auto& [tree, sums] : added) tree->cut().wait_sum_home(*tree, sums);
  return first ? when_all(first, done) : done;
}

void refuse_to_keep(const LaunchRequest& r) {
  refuse_launch(r, "a tree of it is cut over ranks: such launches are given one by one, not bound or traced");
}

}  // namespace coppice
