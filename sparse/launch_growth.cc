// Growth around launches (see launch_growth.h).
#include "sparse/launch_growth.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "gpu/host_access.h"
#include "gpu/messages.h"
#include "gpu/wait_for_code.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::TreeState;

namespace {

// Lets a run that makes room count from nothing.
void begin_room(InStream& s, const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kChangesTopology)) tree->room().begin(s);
  }
}

// Returns whether the run is to be repeated: it went as far as memory allowed. In a recording the launch
// behind it finds out whether that was enough.
bool finish_room(InStream& s, const Prepared& p) {
  bool again = false;
  for (TreeStorage* tree : p.binding.trees) {
    if (!p.uses->does_to(tree, effect::kChangesTopology)) continue;
    tree->room().want_what_is_removed(s);
    if (!s.is_recording())
      again |= tree->growth().resolve_shortage(s, tree->memory().wait_read_state(s), p.name, "");
    // Only what a launch appends to has chunks that nothing is in yet.
    if (!again && p.uses->does_to(tree, effect::kAppends)) tree->room().hide(s);
  }
  if (again) begin_room(s, p);
  return again;
}

// Returns whether trees of the launch have grown, so that it is to be repeated; `now` are their states then.
// The launch says what stands against growing only where nothing else was wrong.
bool resolve_shortages(InStream& s, const Prepared& p, bool lacked_room, const std::optional<Error>& wrong,
                       TreeState* now) {
  bool again = false;
  const std::string_view why_not = lacked_room ? std::string_view() : p.why_not_repeatable;
  try {
    for (size_t t = 0; t < p.binding.trees.size(); ++t) {
      TreeStorage* const tree = p.binding.trees[t];
      now[t] = tree->memory().wait_read_state(s);
      again |= tree->growth().resolve_shortage(s, now[t], p.name, why_not);
    }
  } catch (const Error&) {
    if (wrong) throw *wrong;
    throw;
  }
  return again;
}

// Returns whether the launch is to be repeated; `now` are the trees' states then. Throws what went wrong.
bool find_repeat(InStream& s, const Prepared& p, Device& device,
                 std::span<const TemporaryArgument> temporaries, TreeState* now) {
  bool lacked_room = false;  // in a recording: the launch itself has not run
  std::optional<Error> wrong;
  try {
    const LaunchedKernel kernel = p.kernel(temporaries);
    lacked_room = throw_kernel_error(s, device, kernel) == DeviceStatus::kNoRoom;
    if (p.checks) check_topology_uses(s, kernel);
  } catch (const Error& error) {
    // One item's error hides that others found no cell. These get theirs, and the error comes again.
    if (!p.why_not_repeatable.empty()) throw;
    wrong = error;
  }
  const bool again = resolve_shortages(s, p, lacked_room, wrong, now);
  if (wrong && !again) throw *wrong;
  return again;
}

// In a recording the device finds out what there is to do.
void commit_recorded(InStream& s, const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kChangesTopology)) tree->collector().commit_topology(s);
  }
}

}  // namespace

void give_up_room(InStream& s, const Prepared& p) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kAppends)) tree->room().drop(s);
    tree->collector().commit_topology(s);
  }
}

void make_room_first(Launch& launch, const IntrusivePtr<Prepared>& shared) {
  launch.room_code = shared->room_code;
  launch.make_room = [shared, grain = launch.grain, shared_bytes = launch.shared_bytes](InStream& s,
                                                                                        LaunchBlock& block) {
    // The kernel may turn out not to be one that can be run so; then the launch takes the room that there
    // is.
    wait_for_code(shared->room_code);
    if (shared->room_code.is_error()) return;
    begin_room(s, *shared);
    Launch room;
    room.name = shared->name;
    room.code = shared->room_code;
    room.block = block;
    room.grain = grain, room.shared_bytes = shared_bytes;
    room.skip_on_status = false;
    room.needs_repeat = [shared](InStream& inner, LaunchBlock&) { return finish_room(inner, *shared); };
    try {
      s.run(room);
    } catch (...) {
      if (!s.is_recording()) give_up_room(s, *shared);
      throw;
    }
    block.flags |= kNeedsRoom;
  };
}

void take_full_ranges_first(Launch& launch, const IntrusivePtr<Prepared>& shared, bool every_one) {
  const std::vector<TreeStorage*>& trees = shared->binding.trees;
  if (std::all_of(trees.begin(), trees.end(),
                  [](const TreeStorage* t) { return t->memory().has_full_ranges(); }))
    return;
  launch.make_room = [shared, every_one](InStream& s, LaunchBlock&) {
    for (TreeStorage* tree : shared->binding.trees) {
      if (every_one || shared->uses->does_to(tree, effect::kActivates | effect::kAppends))
        tree->growth().take_full_ranges(s, "kernel " + shared->name);
    }
  };
}

void tell_changes(InStream& s, const Prepared& p, uint64_t launch) {
  for (TreeStorage* tree : p.binding.trees) {
    if (p.uses->does_to(tree, effect::kChangesTopology)) tree->collector().tell_changes(s, launch);
  }
}

bool finish_growth(InStream& s, const Prepared& p, Device& device, const LaunchBlock& block,
                   std::span<const TemporaryArgument> temporaries) {
  const Binding& b = p.binding;
  for (TreeStorage* tree : b.trees) {
    if (p.room_code && p.uses->does_to(tree, effect::kAppends)) tree->room().show(s);
  }
  if (s.is_recording()) {
    commit_recorded(s, p);
    return false;
  }
  TreeState now[kMaxTreesPerKernel];
  bool again = false;
  try {
    again = find_repeat(s, p, device, temporaries, now);
  } catch (...) {
    give_up_room(s, p);
    throw;
  }
  if (!again) {
    for (size_t t = 0; t < b.trees.size(); ++t) b.trees[t]->collector().commit_topology(s, now[t]);
  } else if (device.message_log() != nullptr) {
    device.message_log()->forget(block);  // it prints all that again
  }
  return again;
}

}  // namespace coppice
