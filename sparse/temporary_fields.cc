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
using State = TemporaryFieldUse::State;

// Launches with temporaries are few, and each looks at several trees at most: one lock is for all of them.
std::mutex& states_mutex() {
  static auto& mutex = *new std::mutex;  // never destroyed: threads may launch until the process ends
  return mutex;
}

// Returns why a field has no values, to go behind its name.
std::string missing_text(const TreeStorage& tree, const State& state, std::string_view otherwise) {
  std::string text = state.after == After::kLost
                         ? fmt::format(", whose bytes hold '{}' since {}",
                                       tree.layout().field(state.other).name, state.lost_to)
                         : std::string(otherwise);
  if (state.perhaps_written)
    text += "; a loop that may have no round, or one side of a branch, does not count as having written it";
  return text;
}

[[noreturn]] void refuse(TreeStorage& tree, uint32_t field, const State& state, std::string_view needed_by) {
  const std::string why = missing_text(tree, state, ", to which nothing has been written before");
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "{} needs the temporary {}{}{}", needed_by, tree.layout().field_name(field), why,
          state.after == After::kLost && !state.perhaps_written ? "; its stages must reach to there" : ""));
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

// Returns what is known of a field now. Needs states_mutex().
State& state_of(TreeStorage& tree, uint32_t field) {
  TemporaryFieldStates& states = tree.temporary_fields();
  // With marks, the device knows of each cell.
  if (!tree.options().checks_temporaries) states.follow(tree.device().default_stream().errors_cleared());
  return states.of(field);
}

State one_then_other(const State& one, const State& other) {
  if (other.after != After::kAsBefore) return other;
  State both = one;
  both.perhaps_written |= other.perhaps_written && one.after != After::kWritten;
  return both;
}

State one_or_other(const State& one, const State& other) {
  if (one.after == After::kWritten && other.after == After::kWritten) return one;
  State either = one.after == After::kLost || other.after != After::kLost ? one : other;
  if (either.after == After::kWritten) either.after = After::kAsBefore;
  for (const State& side : {one, other})
    either.perhaps_written |= side.after == After::kWritten || side.perhaps_written;
  return either;
}

// A Write over blocks gives references, and counts as what reads, too; but it needs no values. A Grow that
// adds needs them.
bool only_stores(const LaunchUse& use) {
  return use.role == "Write" || (use.role == "Grow" && !use.does(effect::kAdds));
}

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
      use.state = {After::kWritten};
      for (const uint32_t other : field.sharers) {
        use_of(uses, tree, other).state = {After::kLost, false, std::string(operation), u.field};
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
      if (use.state.after == After::kLost) refuse(*use.tree, use.field, use.state, next.needed_by);
      if (use.state.after == After::kAsBefore && use.needed_by.empty())
        use.needed_by = next.needed_by, use.needed_behind_perhaps = use.state.perhaps_written;
    }
    use.state = one_then_other(use.state, next.state);
  }
  return both;
}

TemporaryFieldUses one_or_other(const TemporaryFieldUses& one, const TemporaryFieldUses& other) {
  TemporaryFieldUses either = one, sides = other;
  for (const TemporaryFieldUse& use : one) use_of(sides, use.tree, use.field);
  for (const TemporaryFieldUse& side : sides) {
    TemporaryFieldUse& use = use_of(either, side.tree, side.field);
    if (use.needed_by.empty())
      use.needed_by = side.needed_by, use.needed_behind_perhaps = side.needed_behind_perhaps;
    use.state = one_or_other(use.state, side.state);
  }
  return either;
}

TemporaryFieldUses one_repeated(const TemporaryFieldUses& one) { return one_then_other(one, one); }

void note_temporary_fields(const TemporaryFieldUses& uses) {
  if (uses.empty()) return;
  const std::lock_guard lock(states_mutex());
  for (const TemporaryFieldUse& use : uses) {
    if (use.needed_by.empty()) continue;
    State now = state_of(*use.tree, use.field);
    if (now.after == After::kWritten) continue;
    now.perhaps_written |= use.needed_behind_perhaps;
    refuse(*use.tree, use.field, now, use.needed_by);
  }
  for (const TemporaryFieldUse& use : uses) {
    State& now = state_of(*use.tree, use.field);
    now = one_then_other(now, use.state);
  }
}

void note_temporary_fields(const LaunchUses& uses, std::string_view operation) {
  if (uses.has_temporary_fields) note_temporary_fields(temporary_fields_of(uses, operation));
}

void check_has_values(TreeStorage& tree, uint32_t field, std::string_view what) {
  if (!tree.layout().field(field).is_temporary()) return;
  const std::lock_guard lock(states_mutex());
  const State& now = state_of(tree, field);
  if (now.after == After::kWritten) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} is a temporary{}", what, tree.layout().field_name(field),
                          missing_text(tree, now, ", to which nothing has been written")));
}

void TemporaryFieldStates::follow(uint64_t errors_cleared) {
  if (errors_cleared == errors_cleared_) return;
  errors_cleared_ = errors_cleared;
  states_.assign(states_.size(), {});
}

}  // namespace coppice
