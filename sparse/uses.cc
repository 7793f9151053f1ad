// Finds what launches touch (see uses.h).
#include "sparse/uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "sparse/launch_errors.h"
#include "sparse/tree_storage.h"

namespace coppice {

using detail::HandleUse;
using detail::LaunchRequest;

namespace {

uint32_t effects_of(const HandleUse& h, uint32_t kernel, bool over_blocks) {
  const uint32_t topology = ((kernel & kActivatesCells) != 0 ? effect::kActivates : 0) |
                            ((kernel & kDeactivatesCells) != 0 ? effect::kDeactivates : 0) |
                            ((kernel & kTestsCells) != 0 ? effect::kTests : 0);
  switch (h.role) {
    case Role::kRead:
      return effect::kReads | (topology & effect::kTests);
    case Role::kWrite:  // data() of a block gives references, which a kernel may also read
      return over_blocks ? effect::kReads | effect::kChanges : effect::kStores;
    case Role::kUpdate:
      return effect::kReads | effect::kChanges;
    case Role::kAccumulate:
      return effect::kAdds;
    case Role::kAtomic:
      return effect::kReads | effect::kChanges | effect::kAdds;
    case Role::kGrow:  // a kernel may have a handle for each of these, and which one does what is not told
      if (h.id.field == kNoField) return topology;
      return topology | ((kernel & kActivatesCells) != 0 ? effect::kStores : 0) |
             ((kernel & kAddsAsItGrows) != 0 ? effect::kAdds : 0);
    case Role::kAppend:
      return (kernel & kActivatesCells) != 0 ? effect::kReads | effect::kAppends | topology
                                             : effect::kReads | topology;
  }
  return ~0u;
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kRead:
      return "Read";
    case Role::kWrite:
      return "Write";
    case Role::kUpdate:
      return "Update";
    case Role::kAccumulate:
      return "Accumulate";
    case Role::kAtomic:
      return "Atomic";
    case Role::kGrow:
      return "Grow";
    case Role::kAppend:
      return "Append";
  }
  return "";
}

// Returns whether the result depends on the order of the items. For a Grow it decides which of several
// values set stays, and what is_active() tells of earlier items; for an Append, the order of the elements;
// for an Atomic, what each item is given.
bool depends_on_order(const HandleUse& h) {
  if (h.role == Role::kAtomic) return true;
  return h.role == Role::kGrow || h.role == Role::kAppend || (h.role == Role::kAccumulate && !h.exact);
}

LaunchUse use_of(const HandleUse& h, uint32_t kernel, bool over_blocks) {
  LaunchUse use;
  use.kind = h.id.field == kNoField ? LaunchUse::Kind::kTopology : LaunchUse::Kind::kField;
  use.tree = static_cast<TreeStorage*>(h.id.tree);
  use.node = h.id.node, use.field = h.id.field;
  use.star = h.star, use.role = name_of(h.role);
  // It is not told which of a kernel's Reads reads elsewhere.
  const bool anywhere = h.role == Role::kGrow || h.role == Role::kAppend || h.role == Role::kAtomic ||
                        (h.role == Role::kAccumulate && h.radius == 0) ||
                        (h.role == Role::kRead && (kernel & (kReadsAnywhere | kReadsNeighbours)) != 0);
  use.radius = anywhere ? LaunchUse::kAnywhere : static_cast<int16_t>(h.radius);
  use.in_neighbours =
      h.role == Role::kRead && (kernel & (kReadsAnywhere | kReadsNeighbours)) == kReadsNeighbours;
  use.effects = effects_of(h, kernel, over_blocks);
  use.depends_on_order = depends_on_order(h);
  use.name = field_name(h);
  return use;
}

// Returns the effects on memory that an argument leads to: what the kernel does to any memory, as far as
// the argument's type lets it.
uint32_t effects_on_memory(uint32_t kernel, bool is_const) {
  uint32_t effects = (kernel & kLoadsMemory) != 0 ? effect::kReads : 0;
  if (is_const) return effects;
  if ((kernel & kStoresMemory) != 0) effects |= effect::kStores;
  if ((kernel & kAtomicsOnMemory) != 0) effects |= effect::kReads | effect::kChanges;
  return effects;
}

constexpr std::pair<uint32_t, std::string_view> kWords[] = {{effect::kReads, "reads"},
                                                            {effect::kStores, "stores"},
                                                            {effect::kChanges, "changes"},
                                                            {effect::kAdds, "adds to"},
                                                            {effect::kAppends, "appends to"},
                                                            {effect::kActivates, "activates"},
                                                            {effect::kDeactivates, "deactivates"},
                                                            {effect::kTests, "tests"}};

// Returns "reads, tests the cells of grid.pointer[64]", for the effects asked for.
std::string words_of(const LaunchUse& use, uint32_t effects) {
  const std::string words = words_of_effects(use.effects & effects);
  const bool is_topology = use.kind == LaunchUse::Kind::kTopology;
  return fmt::format("{} {}{}", words.empty() ? "names" : words, is_topology ? "the cells of " : "",
                     use.name);
}

// Returns "of grid.pointer[64]", the nodes of all handles that may have one of these effects. Of several it
// is not told which has, since such effects are seen in the kernel and not in its handles.
std::string nodes_with(const LaunchUses& uses, uint32_t effects) {
  std::vector<std::string> paths;
  for (const LaunchUse& u : uses.all) {
    if (u.tree == nullptr || u.role.empty() || !u.does(effects)) continue;
    std::string path = static_cast<TreeStorage*>(u.tree)->layout().path(u.node);
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  }
  const std::string last = paths.back();
  paths.pop_back();
  if (paths.empty()) return "of " + last;
  return fmt::format("(of {} and {}; which of them is not told)", fmt::join(paths, ", "), last);
}

std::string words_of_tests(const LaunchUses& uses) {
  return "tests which cells are active and activates cells " +
         nodes_with(uses, effect::kTests | effect::kActivates);
}

std::string words_of_appends(const LaunchUses& uses) {
  const bool may_only_activate = std::ranges::any_of(
      uses.all, [](const LaunchUse& u) { return u.does(effect::kActivates) && !u.does(effect::kAppends); });
  return fmt::format("appends to lists{} {}", may_only_activate ? " or activates cells" : "",
                     nodes_with(uses, effect::kAppends | effect::kActivates));
}

// Memory may be the same behind all arguments, but for slots.
bool is_same(const LaunchUse& a, const LaunchUse& b) {
  if (a.kind != b.kind || a.is_slot != b.is_slot) return false;
  return a.kind == LaunchUse::Kind::kMemory || (a.tree == b.tree && a.field == b.field);
}

}  // namespace

std::string words_of_effects(uint32_t effects) {
  std::string words;
  for (const auto& [bit, word] : kWords) {
    if ((effects & bit) != 0) words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
  }
  return words;
}

IntrusivePtr<LaunchUses> uses_of(const LaunchRequest& r) {
  auto uses = make_intrusive<LaunchUses>();
  uses->reads_count = r.loop.device_count != nullptr;
  const bool over_blocks = is_over_blocks(r);
  for (uint32_t i = 0; i < r.num_handles; ++i)
    uses->all.push_back(use_of(r.handles[i], r.effects, over_blocks));
  for (const HandleUse& h : std::span(r.handles, r.num_handles)) {
    if (h.id.field != kNoField && tree_of(h.id)->layout().field(h.id.field).is_temporary())
      uses->has_temporary_fields = true;
  }
  if (r.loop.tree) {  // which cells the loop visits
    LaunchUse loop;
    loop.kind = LaunchUse::Kind::kTopology;
    loop.tree = r.loop.tree.get();
    loop.node = r.loop.node, loop.field = kNoField, loop.effects = effect::kReads;
    loop.name = r.loop.tree->layout().path(r.loop.node);
    uses->all.push_back(std::move(loop));
  }
  for (size_t i = 0; i < r.slots.size(); ++i) {
    LaunchUse use;
    use.kind = LaunchUse::Kind::kMemory;
    use.radius = LaunchUse::kAnywhere;
    use.argument = r.slots[i].argument;
    use.argument_offset = r.slots_at + static_cast<uint32_t>(i * sizeof(void*));
    use.effects = effect::kReads;
    use.is_slot = true;
    use.name = fmt::format("the slot of argument {}", use.argument);
    uses->all.push_back(std::move(use));
  }
  const uint32_t on_memory = effects_on_memory(r.effects, false);
  uint32_t told = 0;  // of these by arguments
  for (uint32_t i = 0; i < r.num_pointers; ++i) {
    LaunchUse use;
    use.kind = LaunchUse::Kind::kMemory;
    use.radius = LaunchUse::kAnywhere;
    use.argument = r.pointers[i].argument, use.argument_offset = r.pointers[i].offset;
    use.effects = effects_on_memory(r.effects, r.pointers[i].is_const);
    use.depends_on_order = use.does(effect::kChanges) && (r.effects & kDrawsFromMemory) != 0;
    use.name = fmt::format("the memory of argument {}", use.argument);
    told |= use.effects;
    uses->all.push_back(std::move(use));
  }
  // Pointers may also be members of structs or integers, and may be const in an argument's type only.
  const bool may_be_hidden = r.has_hidden_pointers || (r.effects & kComputesAddresses) != 0;
  if ((on_memory & ~told) != 0 || (on_memory != 0 && may_be_hidden)) {
    LaunchUse use;
    use.kind = LaunchUse::Kind::kMemory;
    use.radius = LaunchUse::kAnywhere;
    use.effects = on_memory;
    use.depends_on_order = use.does(effect::kChanges) && (r.effects & kDrawsFromMemory) != 0;
    use.name =
        r.has_hidden_pointers ? "memory behind members of its arguments" : "memory that no argument leads to";
    uses->all.push_back(std::move(use));
  }
  return uses;
}

void add_activation_by_loop(const LaunchRequest& r, LaunchUses& uses) {
  LaunchUse use;
  use.kind = LaunchUse::Kind::kTopology;
  use.radius = LaunchUse::kAnywhere;
  use.tree = r.loop.tree.get();
  use.node = r.loop.node, use.field = kNoField, use.effects = effect::kActivates;
  use.name = r.loop.tree->layout().path(r.loop.node);
  uses.all.push_back(std::move(use));
}

std::string why_not_repeatable(const LaunchUses& uses) {
  constexpr uint32_t kOnce = effect::kChanges | effect::kAdds;
  for (const LaunchUse& a : uses.all) {
    if (a.does(kOnce)) return words_of(a, kOnce);
    if (a.does(effect::kAppends)) return words_of_appends(uses);
    if (a.does(effect::kDeactivates)) return "deactivates cells " + nodes_with(uses, effect::kDeactivates);
    if (uses.reads_count && a.kind == LaunchUse::Kind::kMemory && a.does(effect::kStores))
      return words_of(a, effect::kStores) + ", where the count of its range may be";
    // A kernel that tests what is active, and activates, finds another answer the second time.
    if (a.does(effect::kTests) && uses.does_to(a.tree, effect::kActivates)) return words_of_tests(uses);
    for (const LaunchUse& b : uses.all) {
      if (is_same(a, b) && a.kind != LaunchUse::Kind::kTopology && a.does(effect::kReads) &&
          b.does(effect::kStores))
        return "both reads and stores " + a.name;
    }
  }
  return "";
}

std::string why_no_room(const LaunchRequest& r, const LaunchUses& uses) {
  if ((r.effects & kDrawsFromMemory) != 0) return "goes on by what its atomic operations give it";
  if ((r.effects & kDecidesByChanges) != 0) return "decides what to activate by what it changes";
  // The threads of a team talk through fast memory, which would stay empty.
  if (r.item == LaunchRequest::LoopItem::kBlockTeam) return "shares fast memory among threads";
  for (const LaunchUse& a : uses.all) {
    for (const LaunchUse& b : uses.all) {
      const bool reads_changed =
          &a != &b && a.kind == LaunchUse::Kind::kField && is_same(a, b) && a.does(effect::kReads) &&
          b.does(effect::kStores | effect::kChanges | effect::kAdds | effect::kAppends);
      if (reads_changed && (r.effects & kDecidesByFields) != 0)
        return "decides what to activate by " + a.name;
    }
    const bool grows = a.tree != nullptr && uses.does_to(a.tree, effect::kActivates | effect::kAppends);
    // The run would find active what it is about to activate.
    if (grows && a.does(effect::kTests)) return words_of_tests(uses);
    // All that lies below goes, too, and nobody can tell how much of it comes again.
    if (grows && a.does(effect::kDeactivates) &&
        static_cast<TreeStorage*>(a.tree)->layout().node_layout(a.node).below.count > 0)
      return fmt::format("may activate cells anew below those of {} that it deactivates",
                         static_cast<TreeStorage*>(a.tree)->layout().path(a.node));
  }
  return "";
}

std::string text_of(const LaunchUses& uses) {
  std::string text;
  for (const LaunchUse& use : uses.all) {
    if (use.kind == LaunchUse::Kind::kMemory && use.effects == 0) continue;
    text += "  " + words_of(use, ~0u);
    if (!use.role.empty()) text += fmt::format(" as {}", use.role);
    const bool is_tree = use.kind != LaunchUse::Kind::kMemory;
    if (is_tree && use.radius == LaunchUse::kAnywhere)
      text += use.in_neighbours ? ", in blocks beside its own" : ", anywhere";
    if (use.radius > 0) text += fmt::format(", {}<{}>", use.star ? "Star" : "Box", use.radius);
    if (is_tree && use.role.empty()) text += ", to loop over them";
    text += use.depends_on_order ? ", in the order of the items\n" : "\n";
  }
  return text;
}

}  // namespace coppice
