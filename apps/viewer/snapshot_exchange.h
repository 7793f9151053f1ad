// Two snapshots that go back and forth between the simulation's thread and the
// viewer's. Neither waits for the other.
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
  // `on_change` is called when the viewer has taken one or let go of one, on whichever
  // thread did. It may not call back.
  explicit SnapshotExchange(std::function<void()> on_change = {});
  ~SnapshotExchange();  // nobody is told any more
  SnapshotExchange(const SnapshotExchange&) = delete;
  SnapshotExchange& operator=(const SnapshotExchange&) = delete;

  // One to fill, or null: neither is free. With `again`, the ready one where neither is, which is ready no
  // more then. The simulation's thread.
  Snapshot* begin_filling(bool again = false);
  // Makes what was begun ready; a ready one that nobody took becomes free. The simulation's thread.
  void publish();
  // Gives up what was begun: it failed. The simulation's thread.
  void abandon();
  // Whether what was published has not been taken. Any thread.
  bool has_ready() const;
  // The latest, if it was not taken yet; else null. Whoever has it may outlive the exchange.
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
