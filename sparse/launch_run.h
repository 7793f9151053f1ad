// Launches that are given as a whole again and again, with the primitives, copies and fills between them: a
// part of a traced function (sparse/segment.h).
//
// On the cpu they run one by one: a launch costs a host that shares its memory with the device next to
// nothing; so do launches with checks, and those that there is no memory to record. Elsewhere they are
// recorded once and replayed, on a GPU as one CUDA graph (gpu/in_stream.h). The results are those of giving
// the launches one by one. Topology may change on the way: activation, the lists that loops run through and
// collection are part of what is recorded, by counts that stay on the device. Memory grows between replays:
// where a launch runs out of cells, all behind it is skipped on the device; then it is repeated and the
// launches behind it are given one by one, and the replays that are left follow. A primitive, copy or fill
// cannot skip itself, so it is recorded only with launches that leave no status: they add to no field and
// change no topology. What uses nothing that the other changes may run side by side, where neither leaves a
// status (sparse/ordering.h).
//
// A tree that none of the launches changes costs nothing in a replay: its lists are brought up to date
// before. Cost: a look at the status for each call of run() and 256 replays, where launches may leave one
// (more for the first of them); the lists of a recording have room for all cells of their allocators'
// capacity. On the cpu nothing is allocated.
#pragma once
#include <functional>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sparse/ordering.h"
#include "sparse/program.h"
#include "sparse/tree_storage.h"

namespace coppice {

// Throws an Error kCancelled once the process ends: whoever runs something often asks each time.
void leave_at_process_end();

// A primitive, copy or fill.
struct DeviceCall {
  std::string_view name;  // of the operation; outlives it
  // Throws what is wrong with the buffers as they are: operations before it may let them grow or shrink.
  std::function<void()> check;
  std::function<void(InStream&)> give;
  ResourceUses uses;  // of these buffers

  void run(InStream& s) const;
};

// Returns whether a launch may leave a status, as it is now.
bool may_leave_status(const BoundLaunch& launch);

class LaunchRun {
 public:
  using Item = std::variant<BoundLaunch, DeviceCall>;

  // There is at least one launch, and all are of one device. It keeps them. `before` has the items that each
  // comes behind, whatever they use; those that follow from uses are found.
  LaunchRun(std::vector<Item> items, Predecessors before);
  // Runs all of them, so many times. Used by one stream's thread. Errors: those of the item that failed.
  void run(InStream& s, uint64_t times);

 private:
  // An item, and what its launch was when it was looked at; null where it is none.
  struct Seen {
    const Item* item;
    IntrusivePtr<const SharedLaunch> launch;
  };

  void look_at_launches();
  void look_at(const Launch& launch);
  bool can_replay() const;
  // Returns which items each is recorded behind.
  Predecessors order_of_items() const;
  bool uses_changed_tree(const Seen& seen) const;
  bool has_new_kernels() const;
  bool is_current(InStream& s) const;
  void record(InStream& s);
  bool can_record(InStream& s);  // records them, if there is memory for that
  void run_one_by_one(InStream& s, size_t first);
  void give_up(InStream& s);
  void replay(InStream& s, uint64_t times);
  uint32_t replay_and_look(InStream& s, uint64_t times, uint64_t& first);

  const std::vector<Item> items_;
  const Predecessors before_;
  std::vector<Seen> seen_;
  Device* device_ = nullptr;  // of the launches, which keep it
  uint64_t num_launches_ = 0;
  std::vector<TreeStorage*> trees_;    // kept by the launches
  std::vector<TreeStorage*> changed_;  // of these
  bool may_leave_status_ = false, has_checks_ = false;
  std::unordered_map<TreeStorage*, NeededLists> needed_lists_;
  IntrusivePtr<Recording> recording_;
  std::vector<IntrusivePtr<RefCounted>> kept_;
  std::vector<uint64_t> generations_;  // of the trees, when it was made
  // Runs before it is tried again, where there was no memory to record, and how many these were last.
  uint64_t runs_to_retry_ = 0, retry_period_ = 0;
};

}  // namespace coppice
