// Recording and replaying launches (see launch_run.h).
#include "sparse/launch_run.h"

#include <algorithm>

#include "core/error.h"
#include "core/process_end.h"
#include "core/trace.h"
#include "gpu/host_access.h"

namespace coppice {
namespace {

bool contains(const std::vector<TreeStorage*>& all, const TreeStorage* one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// A status tells launches apart by 24 bits of their number.
constexpr uint64_t kMostLaunchesAtOnce = 1u << 20;
// How many replays go before a look at the status: all behind a shortage of memory are in vain, and what
// they print waits. There are more when the ones before went well.
constexpr uint64_t kFirstReplays = 4, kMostReplays = 256;
constexpr uint64_t kMostRunsToRetry = 1023;

}  // namespace

void leave_at_process_end() {
  if (process_is_ending()) throw Error(ErrorCode::kCancelled, "the process ends");
}

void DeviceCall::run(InStream& s) const {
  check();
  give(s);
}

bool may_leave_status(const BoundLaunch& launch) { return launch.shared()->launch.may_leave_status(); }

LaunchRun::LaunchRun(std::vector<Item> items, Predecessors before)
    : items_(std::move(items)), before_(std::move(before)) {
  look_at_launches();
}

// Finds out what the launches touch. A kernel that was replaced (sparse/kernel_reload.h) may touch something
// else.
void LaunchRun::look_at_launches() {
  trees_.clear(), changed_.clear(), needed_lists_.clear(), seen_.clear(), recording_.reset();
  may_leave_status_ = has_checks_ = false;
  num_launches_ = 0;
  for (const Item& item : items_) {
    const auto* const bound = std::get_if<BoundLaunch>(&item);
    seen_.push_back({&item, bound != nullptr ? bound->shared() : nullptr});
    if (bound == nullptr) continue;
    device_ = &bound->device();
    ++num_launches_;
    look_at(seen_.back().launch->launch);
  }
}

void LaunchRun::look_at(const Launch& launch) {
  may_leave_status_ |= launch.may_leave_status();
  has_checks_ |= launch.has_checks;
  if (!launch.uses) return;
  for (const LaunchUse& use : launch.uses->all) {
    auto* const tree = static_cast<TreeStorage*>(use.tree);
    if (tree == nullptr) continue;
    if (!contains(trees_, tree)) trees_.push_back(tree);
    if (use.does(effect::kChangesTopology) && !contains(changed_, tree)) changed_.push_back(tree);
  }
}

bool LaunchRun::has_new_kernels() const {
  return std::any_of(seen_.begin(), seen_.end(), [](const Seen& seen) {
    return seen.launch && std::get<BoundLaunch>(*seen.item).shared() != seen.launch;
  });
}

// A kernel that was replaced may leave a status where the one before it did not. Where a buffer has no room,
// what stands before the call that finds it is done.
bool LaunchRun::can_replay() const {
  const bool has_calls = num_launches_ < items_.size();
  if (has_checks_ || device_->commits_on_touch() || (has_calls && may_leave_status_)) return false;
  try {
    for (const Item& item : items_) {
      if (const auto* const call = std::get_if<DeviceCall>(&item)) call->check();
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

void LaunchRun::run(InStream& s, uint64_t times) {
  if (has_new_kernels()) look_at_launches();
  if (can_replay()) return replay(s, times);
  for (uint64_t i = 0; i < times; ++i) run_one_by_one(s, 0);
}

void LaunchRun::run_one_by_one(InStream& s, size_t first) {
  leave_at_process_end();
  for (size_t i = first; i < seen_.size(); ++i) {
    if (!seen_[i].launch) {
      const auto& call = std::get<DeviceCall>(*seen_[i].item);
      const TraceScope trace(call.name);
      call.run(s);
      continue;
    }
    const Launch& launch = seen_[i].launch->launch;
    const TraceScope trace(launch.name);
    LaunchBlock block = launch.block;
    s.run(launch, block);
    if (s.is_done_at_return()) s.hand_over_messages();
  }
}

void LaunchRun::replay(InStream& s, uint64_t times) {
  const uint64_t n = num_launches_;
  uint64_t most = std::max<uint64_t>(1, kMostLaunchesAtOnce / n);
  if (may_leave_status_) most = std::min(most, kMostReplays);
  if (s.is_done_at_return()) most = 1;  // a look costs nothing
  uint64_t at_once = may_leave_status_ ? std::min(most, kFirstReplays) : most;
  for (uint64_t done = 0; done < times;) {
    for (TreeStorage* tree : trees_) tree->lists().update(s, needed_lists_[tree]);
    if (!is_current(s) && !can_record(s)) {
      for (; done < times; ++done) run_one_by_one(s, 0);
      return;
    }
    leave_at_process_end();
    const uint64_t replays = std::min(times - done, at_once);
    uint64_t first = 0;
    const uint32_t word = replay_and_look(s, replays, first);
    done += replays;
    at_once = word == 0 ? std::min(2 * at_once, most) : std::min(most, kFirstReplays);
    if (word == 0) continue;
    const uint64_t behind = (status_launch(word) - static_cast<uint32_t>(first)) & 0xffffff;
    if (behind >= n * replays) return;  // it was there before: all was skipped
    // The launch that left a status is resumed, and those behind it are given. All items are launches here.
    s.resume(seen_[behind % n].launch->launch, first + behind);
    run_one_by_one(s, behind % n + 1);
    if (status_of(word) == DeviceStatus::kStop) return;
    done -= replays - behind / n - 1;
  }
}

// Returns the status that the replays have left, and the number of the first launch.
uint32_t LaunchRun::replay_and_look(InStream& s, uint64_t times, uint64_t& first) {
  uint32_t word = 0;
  try {
    first = s.replay(*recording_);
    for (uint64_t i = 1; i < times; ++i) {
      leave_at_process_end();
      s.replay(*recording_);
    }
    if (may_leave_status_) word = wait_read(s, &device_->context().status);
    if (word == 0 && (may_leave_status_ || s.is_done_at_return())) s.hand_over_messages();
  } catch (...) {
    give_up(s);
    throw;
  }
  if (!changed_.empty()) {
    for (TreeStorage* tree : trees_) tree->lists().wait_sync_after_replays(s);
  }
  return word;
}

// The emulated GPU ended a replay at a fault. What cannot be done on a device that is lost is left.
void LaunchRun::give_up(InStream& s) {
  try {
    write_value(s, &device_->context().status, 0);
    for (TreeStorage* tree : trees_) tree->lists().wait_sync_after_replays(s);
  } catch (const Error&) {
  }
  for (const Seen& seen : seen_) {
    if (seen.launch) give_up_on(s, seen.launch->launch);
  }
}

bool LaunchRun::is_current(InStream& s) const {
  for (size_t t = 0; recording_ && t < trees_.size(); ++t) {
    if (trees_[t]->generation(s) != generations_[t]) return false;
  }
  return static_cast<bool>(recording_);
}

// A launch that may leave a status is alone: what is given before it is done, and what comes behind it skips
// itself. So is one whose lists are made in the recording. Primitives share the recording's scratch memory.
Predecessors LaunchRun::order_of_items() const {
  const auto of_all = [](const void* object, bool changes) {
    ResourceUse use;
    use.kind = ResourceUse::Kind::kTopology;  // no pointer leads there
    use.object = object;
    use.reads = true, use.writes = changes;
    return use;
  };
  std::vector<ResourceUses> all;
  for (const Seen& seen : seen_) {
    const auto* const call = std::get_if<DeviceCall>(seen.item);
    ResourceUses uses = call != nullptr ? call->uses : resources_of(seen.launch->launch);
    const bool is_alone = call == nullptr && (seen.launch->launch.may_leave_status() ||
                                              uses_changed_tree(seen) || !seen.launch->launch.uses);
    uses.push_back(of_all(device_, is_alone));
    if (call != nullptr) uses.push_back(of_all(this, true));
    all.push_back(std::move(uses));
  }
  Predecessors order = order_by_uses(all);
  for (size_t i = 0; i < order.size(); ++i) {
    order[i].insert(order[i].end(), before_[i].begin(), before_[i].end());
    std::sort(order[i].begin(), order[i].end());
    order[i].erase(std::unique(order[i].begin(), order[i].end()), order[i].end());
  }
  return order;
}

bool LaunchRun::uses_changed_tree(const Seen& seen) const {
  if (!seen.launch->launch.uses) return false;
  const std::vector<LaunchUse>& uses = seen.launch->launch.uses->all;
  return std::any_of(uses.begin(), uses.end(), [this](const LaunchUse& use) {
    return use.tree != nullptr && contains(changed_, static_cast<TreeStorage*>(use.tree));
  });
}

// Recording needs memory for lists of all cells that there is room for, and for primitives; giving launches
// one by one does not. Trying costs as much as it does, so that it is tried ever more seldom.
bool LaunchRun::can_record(InStream& s) {
  if (runs_to_retry_ > 0) {
    --runs_to_retry_;
    return false;
  }
  try {
    record(s);
    retry_period_ = 0;
    return true;
  } catch (const Error&) {
    recording_.reset();
    retry_period_ = std::min<uint64_t>(2 * retry_period_ + 1, kMostRunsToRetry);
    runs_to_retry_ = retry_period_;
    return false;
  }
}

void LaunchRun::record(InStream& s) {
  recording_.reset(), kept_.clear(), generations_.clear();
  // Lists are there from now on, so that only those of trees that change must be looked at in replays.
  for (const Seen& seen : seen_) {
    if (!seen.launch || !seen.launch->launch.before_loop) continue;
    LaunchBlock block = seen.launch->launch.block;
    seen.launch->launch.before_loop(s, block);
  }
  for (TreeStorage* tree : trees_) tree->lists().begin_recording(s, contains(changed_, tree));
  const Predecessors before = order_of_items();
  recording_ = s.record([&](InStream& recording) {
    for (size_t i = 0; i < seen_.size(); ++i) {
      recording.begin_part(before[i]);
      if (!seen_[i].launch) {
        std::get<DeviceCall>(*seen_[i].item).give(recording);
        continue;
      }
      LaunchBlock block = seen_[i].launch->launch.block;
      recording.run(seen_[i].launch->launch, block);
    }
  });
  recording_->may_leave_status = may_leave_status_;
  recording_->holds_calls = num_launches_ < items_.size();
  for (TreeStorage* tree : trees_) {
    tree->lists().keep_for_recording(s, kept_);
    needed_lists_[tree] = contains(changed_, tree) ? NeededLists() : tree->lists().needed(s);
    tree->lists().forget_lost(s);
    generations_.push_back(tree->generation(s));
  }
}

}  // namespace coppice
