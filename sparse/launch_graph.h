// Launches that are given together again and again: recorded once and replayed as a
// whole, on a GPU as one CUDA graph.
//
//     LaunchGraph step({program.bind(activate, range(n), ...), program.bind(move, over(leaf), ...),
//                       bind_deactivate_all(block)});
//     step.launch(1000);                                         // AsyncValueRef<Chain>
//
// The results are those of giving the launches one by one. Topology may change on the way:
// activation, the lists that loops run through and collection are part of what is recorded, by counts
// that stay on the device. Memory grows between replays: where a launch runs out of cells, all behind
// it is skipped on the device; then it is repeated and the launches behind it are given one by one,
// and the replays that are left follow.
//
// A tree that none of the launches changes costs nothing in a replay: its lists are brought up to date
// before.
//
// A recording cannot hold what the host asks, activation from coordinates, and trimming. Cost: a look at
// the status for each call of launch(), whatever `times` is; the lists of a recording have room for all
// cells of their allocators' capacity.
#pragma once
#include <vector>

#include "sparse/program.h"

namespace coppice {

class LaunchGraph {
 public:
  // Errors: kInvalidArgument when there are none, or they are of several devices.
  explicit LaunchGraph(std::vector<BoundLaunch> launches);
  // Launches all of them, so many times, in the order of their device's default stream. Errors arrive with
  // the value, as those of the launch that failed; kInvalidArgument at once when `times` is negative or
  // the graph was moved from.
  AsyncValueRef<Chain> launch(int times = 1) const;

 private:
  class State;
  IntrusivePtr<RefCounted> state_;  // a State
};

// Binds Node::deactivate_all() as a launch.
BoundLaunch bind_deactivate_all(const Node& node);

}  // namespace coppice
