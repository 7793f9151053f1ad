// Recording and replaying launches (see launch_graph.h).
#include "sparse/launch_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "gpu/host_access.h"
#include "runtime_collection.kernels.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

bool contains(const std::vector<TreeStorage*>& all, const TreeStorage* one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// A status tells launches apart by 24 bits of their number.
constexpr uint32_t kMostLaunchesAtOnce = 1u << 20;

}  // namespace

class LaunchGraph::State final : public RefCounted {
 public:
  explicit State(std::vector<BoundLaunch> launches) : launches_(std::move(launches)) { look_at_launches(); }
  Stream& stream() const { return launches_.front().stream(); }

  void run(InStream& s, int times) {
    if (has_new_kernels()) look_at_launches();
    // A launch costs a host that shares its memory with the device next to nothing,
    // and no launch needs room there.
    if (launches_.front().device().commits_on_touch()) return run_one_by_one(s, times);
    const auto n = static_cast<uint32_t>(launches_.size());
    for (int done = 0; done < times;) {
      for (TreeStorage* tree : trees_) tree->lists().update(s, needed_lists_[tree]);
      if (!is_current(s)) record(s);
      const int most = static_cast<int>(std::max(1u, kMostLaunchesAtOnce / n));
      const int replays = std::min(times - done, most);
      uint64_t first = 0;
      uint32_t word = 0;
      try {
        first = s.replay(*recording_);
        for (int i = 1; i < replays; ++i) s.replay(*recording_);
        word = wait_read(s, &launches_.front().device().context().status);
      } catch (...) {
        give_up(s);
        throw;
      }
      for (TreeStorage* tree : trees_) tree->lists().wait_sync_after_replays(s);
      done += replays;
      if (word == 0) continue;
      const uint32_t behind = (status_launch(word) - static_cast<uint32_t>(first)) & 0xffffff;
      if (behind >= n * static_cast<uint32_t>(replays)) return;  // it was there before: all was skipped
      launch_rest_after(s, behind % n, first + behind);
      if (status_of(word) == DeviceStatus::kStop) return;
      done += static_cast<int>(behind / n) + 1 - replays;
    }
  }

 private:
  // Finds out what the launches touch. A kernel that was replaced (sparse/kernel_reload.h) may touch
  // something else.
  void look_at_launches() {
    trees_.clear(), changed_.clear(), needed_lists_.clear(), seen_.clear(), recording_.reset();
    for (const BoundLaunch& launch : launches_) {
      seen_.push_back(launch.shared());
      for (const LaunchUse& use : seen_.back()->launch.uses->all) {
        auto* const tree = static_cast<TreeStorage*>(use.tree);
        if (tree == nullptr) continue;
        if (!contains(trees_, tree)) trees_.push_back(tree);
        if (use.does(effect::kChangesTopology) && !contains(changed_, tree)) changed_.push_back(tree);
      }
    }
  }
  bool has_new_kernels() const {
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (launches_[i].shared() != seen_[i]) return true;
    }
    return false;
  }

  void run_one_by_one(InStream& s, int times) {
    for (int i = 0; i < times; ++i) {
      for (const BoundLaunch& bound : launches_) {
        Launch launch = bound.shared()->launch;
        s.run(launch);
      }
    }
  }

  // The emulated GPU ended a replay at a fault. What cannot be done on a device that is lost is left.
  void give_up(InStream& s) {
    try {
      write_value(s, &launches_.front().device().context().status, 0);
      for (TreeStorage* tree : trees_) tree->lists().wait_sync_after_replays(s);
    } catch (const Error&) {
    }
    for (const BoundLaunch& bound : launches_) give_up_on(s, bound.shared()->launch);
  }

  bool is_current(InStream& s) const {
    for (size_t t = 0; recording_ && t < trees_.size(); ++t) {
      if (trees_[t]->generation(s) != generations_[t]) return false;
    }
    return static_cast<bool>(recording_);
  }

  void record(InStream& s) {
    recording_.reset(), kept_.clear(), generations_.clear();
    // Lists are there from now on, so that only those of trees that change must be looked at in replays.
    for (const BoundLaunch& bound : launches_) {
      const IntrusivePtr<const SharedLaunch> shared = bound.shared();
      LaunchBlock block = shared->launch.block;
      if (shared->launch.before_loop) shared->launch.before_loop(s, block);
    }
    for (TreeStorage* tree : trees_) tree->lists().begin_recording(s, contains(changed_, tree));
    recording_ = s.record([&](InStream& recording) {
      for (const BoundLaunch& bound : launches_) {
        Launch launch = bound.shared()->launch;
        recording.run(launch);
      }
    });
    for (TreeStorage* tree : trees_) {
      tree->lists().keep_for_recording(s, kept_);
      needed_lists_[tree] = contains(changed_, tree) ? NeededLists() : tree->lists().needed(s);
      tree->lists().forget_lost(s);
      generations_.push_back(tree->generation(s));
    }
  }

  // Resumes launch i, which left a status, and runs the launches behind it.
  void launch_rest_after(InStream& s, size_t i, uint64_t number) {
    s.resume(launches_[i].shared()->launch, number);
    for (++i; i < launches_.size(); ++i) {
      Launch launch = launches_[i].shared()->launch;
      s.run(launch);
    }
  }

  const std::vector<BoundLaunch> launches_;
  std::vector<IntrusivePtr<const SharedLaunch>> seen_;  // what `launches_` were when they were looked at
  std::vector<TreeStorage*> trees_;                     // kept by the launches
  std::vector<TreeStorage*> changed_;                   // of these
  std::unordered_map<TreeStorage*, NeededLists> needed_lists_;
  IntrusivePtr<Recording> recording_;
  std::vector<IntrusivePtr<RefCounted>> kept_;
  std::vector<uint64_t> generations_;  // of the trees, when it was made
};

LaunchGraph::LaunchGraph(std::vector<BoundLaunch> launches) {
  if (launches.empty()) throw Error(ErrorCode::kInvalidArgument, "a launch graph of no launches");
  for (const BoundLaunch& launch : launches) {
    if (&launch.device() == &launches.front().device()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a launch graph: {} and {} belong to different devices", launches.front().name(),
                            launch.name()));
  }
  state_ = make_intrusive<State>(std::move(launches));
}

AsyncValueRef<Chain> LaunchGraph::launch(int times) const {
  if (times < 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a launch graph cannot be launched {} times", times));
  if (!state_) throw Error(ErrorCode::kInvalidArgument, "a LaunchGraph is launched that was moved from");
  const IntrusivePtr<State> state = share(static_cast<State*>(state_.get()));
  return state->stream().issue("launch_graph", [state, times](InStream& s) { state->run(s, times); });
}

BoundLaunch bind_deactivate_all(const Node& node) {
  TreeStorage& tree = node.storage();
  tree.freeze();
  Launch launch = tree.programs().with_host(
      [&](Program& program) { return program.make_launch(mark_changed, range(1), tree.memory().state()); });
  launch.keep_alive.push_back(share(&tree));
  LaunchUse use;
  use.kind = LaunchUse::Kind::kTopology;
  use.tree = &tree, use.node = node.id(), use.field = kNoField;
  use.effects = effect::kDeactivates, use.radius = LaunchUse::kAnywhere;
  use.name = node.path();
  launch.uses = make_intrusive<LaunchUses>(std::vector<LaunchUse>{use});
  launch.needs_repeat = [&tree, id = node.id()](InStream& s, LaunchBlock&) {
    tree.collector().recycle_below(s, id);
    tree.collector().commit_topology(s);
    return false;
  };
  return BoundLaunch(share(&tree.device()), std::move(launch));
}

}  // namespace coppice
