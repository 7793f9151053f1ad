// Two snapshots go back and forth between the simulation's thread and the viewer's. Neither thread waits
// for the other.
//
//   free -> filled by the simulation -> ready -> taken by the viewer -> free, when the viewer lets go of it
//
// While one is shown and the other is ready, there is none to fill: the simulation goes on without.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <mutex>

#include "apps/viewer/snapshot.h"

namespace coppice::viewer {

class SnapshotExchange {
 public:
  // `on_change` is called when the viewer has taken one or let go of one, on whichever thread did that.
  // It may not call back.
  explicit SnapshotExchange(std::function<void()> on_change = {});
  ~SnapshotExchange();  // nobody is told any more
  SnapshotExchange(const SnapshotExchange&) = delete;
  SnapshotExchange& operator=(const SnapshotExchange&) = delete;

  // Returns one to fill, or null where neither is free. With `again` it then returns the ready one, which
  // is ready no more. Called on the simulation's thread.
  Snapshot* begin_filling(bool again = false);
  // Makes what was begun ready; a ready one that nobody took becomes free. Called on the simulation's
  // thread.
  void publish();
  // Gives up what was begun, because it failed. Called on the simulation's thread.
  void abandon();
  // Returns whether what was published has not been taken. May be called on any thread.
  bool has_ready() const;
  // Returns the latest, if it was not taken yet; else null. It may outlive the exchange.
  std::shared_ptr<const Snapshot> take();

 private:
  enum class State { kFree, kFilling, kReady, kTaken };
  // Outlives the exchange while snapshots are out.
  struct Slots {
    mutable std::mutex mutex;
    std::function<void()> on_change;
    std::array<Snapshot, 2> snapshots;
    std::array<State, 2> states{State::kFree, State::kFree};
  };
  int find(State state) const;  // with the mutex held; -1: none

  std::shared_ptr<Slots> slots_;
};

}  // namespace coppice::viewer
