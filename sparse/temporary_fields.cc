// The lives of temporary fields (see temporary_fields.h).
#include "sparse/temporary_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using After = TemporaryFieldUse::After;

// Launches with temporaries are few, and each looks at several trees at most: one lock is for all of them.
std::mutex& states_mutex() {
  static auto& mutex = *new std::mutex;  // never destroyed: threads may launch until the process ends
  return mutex;
}

std::string lost_text(const TreeStorage& tree, uint32_t other, std::string_view lost_to) {
  return fmt::format("whose bytes hold '{}' since {}", tree.layout().field(other).name, lost_to);
}

[[noreturn]] void refuse_lost(const TemporaryFieldUse& lost, std::string_view needed_by) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} needs the temporary {}, {}; its stages must reach to there", needed_by,
                          lost.tree->layout().field_name(lost.field),
                          lost_text(*lost.tree, lost.other, lost.lost_to)));
}

TemporaryFieldUse& use_of(TemporaryFieldUses& uses, TreeStorage* tree, uint32_t field) {
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const TemporaryFieldUse& use) {
    return use.tree == tree && use.field == field;
  });
  if (found != uses.end()) return *found;
  TemporaryFieldUse& added = uses.emplace_back();
  added.tree = tree, added.field = field;
  return added;
}

void set_after(TemporaryFieldUse& use, const TemporaryFieldUse& from) {
  use.after = from.after, use.lost_to = from.lost_to, use.other = from.other;
}

// A Write over blocks gives references, and counts as what reads, too; but it needs no values.
bool only_stores(const LaunchUse& use) { return use.role == "Write" || use.role == "Grow"; }

}  // namespace

TemporaryFieldUses temporary_fields_of(const LaunchUses& launch, std::string_view operation) {
  TemporaryFieldUses uses;
  if (!launch.has_temporary_fields) return uses;
  // A launch needs a field as it was before: all needs come first.
  for (const bool stores : {false, true}) {
    for (const LaunchUse& u : launch.all) {
      if (u.kind != LaunchUse::Kind::kField || only_stores(u) != stores) continue;
      auto* const tree = static_cast<TreeStorage*>(u.tree);
      const TreeField& field = tree->layout().field(u.field);
      if (!field.is_temporary()) continue;
      TemporaryFieldUse& use = use_of(uses, tree, u.field);
      if (!stores) {
        use.needed_by = operation;
        continue;
      }
      if (!u.does(effect::kStores | effect::kChanges)) continue;
      use.after = After::kWritten;
      for (const uint32_t other : field.sharers) {
        TemporaryFieldUse& lost = use_of(uses, tree, other);
        lost.after = After::kLost, lost.lost_to = operation, lost.other = u.field;
      }
    }
  }
  return uses;
}

TemporaryFieldUses one_then_other(const TemporaryFieldUses& one, const TemporaryFieldUses& other) {
  TemporaryFieldUses both = one;
  for (const TemporaryFieldUse& next : other) {
    TemporaryFieldUse& use = use_of(both, next.tree, next.field);
    if (!next.needed_by.empty()) {
      if (use.after == After::kLost) refuse_lost(use, next.needed_by);
      if (use.after == After::kAsBefore && use.needed_by.empty()) use.needed_by = next.needed_by;
    }
    if (next.after != After::kAsBefore) set_after(use, next);
  }
  return both;
}

TemporaryFieldUses one_or_other(const TemporaryFieldUses& one, const TemporaryFieldUses& other) {
  TemporaryFieldUses either = one;
  for (const TemporaryFieldUse& next : other) {
    TemporaryFieldUse& use = use_of(either, next.tree, next.field);
    if (use.needed_by.empty()) use.needed_by = next.needed_by;
    if (next.after > use.after) set_after(use, next);
  }
  return either;
}

TemporaryFieldUses one_repeated(const TemporaryFieldUses& one) { return one_then_other(one, one); }

void note_temporary_fields(const TemporaryFieldUses& uses) {
  if (uses.empty()) return;
  const std::lock_guard lock(states_mutex());
  for (const TemporaryFieldUse& use : uses) {
    if (use.needed_by.empty()) continue;
    const TemporaryFieldStates::State& now = use.tree->temporary_fields().of(use.field);
    if (now.after == After::kWritten) continue;
    if (now.after == After::kLost)
      refuse_lost({use.tree, use.field, "", now.after, now.lost_to, now.other}, use.needed_by);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} needs the temporary {}, to which nothing has been written before",
                            use.needed_by, use.tree->layout().field_name(use.field)));
  }
  for (const TemporaryFieldUse& use : uses) {
    if (use.after == After::kAsBefore) continue;
    use.tree->temporary_fields().of(use.field) = {use.after, use.lost_to, use.other};
  }
}

void note_temporary_fields(const LaunchUses& uses, std::string_view operation) {
  if (uses.has_temporary_fields) note_temporary_fields(temporary_fields_of(uses, operation));
}

void check_has_values(TreeStorage& tree, uint32_t field, std::string_view what) {
  if (!tree.layout().field(field).is_temporary()) return;
  const std::lock_guard lock(states_mutex());
  const TemporaryFieldStates::State& now = tree.temporary_fields().of(field);
  if (now.after == After::kWritten) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} is a temporary, {}", what, tree.layout().field_name(field),
                          now.after == After::kLost ? lost_text(tree, now.other, now.lost_to)
                                                    : "to which nothing has been written"));
}

}  // namespace coppice
