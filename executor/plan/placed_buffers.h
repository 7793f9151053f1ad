// An index of the buffers that have their places, by the times at which they are needed; for greedy planners.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

// Holds buffers by their times. Each lies in the nodes of a tree over times that cover its own, so that one
// path through the tree has all that are needed at one time.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(const Problem& problem);
  void add(uint32_t buffer);
  // Calls visit(index) for each that is needed at some time together with `buffer`, in no particular order.
  // Cost: log n, and the buffers of the problem that begin within its time.
  template <class Visit>
  void visit_beside(uint32_t buffer, const Visit& visit) const {
    for (size_t node = first_[buffer] + num_times_; node > 0; node /= 2) {
      for (const uint32_t other : nodes_[node]) visit(other);
    }
    for (size_t at = begins_[first_[buffer] + 1]; at < begins_[last_[buffer]]; ++at) {
      if (is_placed_[by_begin_[at]]) visit(by_begin_[at]);
    }
  }
  // Returns how many buffers of the problem begin within the buffer's time: visit_beside() looks at each.
  size_t num_begun_within(uint32_t buffer) const {
    return begins_[last_[buffer]] - begins_[first_[buffer] + 1];
  }
  // Times are counted: those at which a buffer begins or ends. It is needed in [first, last).
  size_t first(uint32_t buffer) const { return first_[buffer]; }
  size_t last(uint32_t buffer) const { return last_[buffer]; }
  size_t num_times() const { return num_times_; }

 private:
  size_t num_times_ = 1;
  std::vector<size_t> first_, last_;
  std::vector<std::vector<uint32_t>> nodes_;  // of a tree: node i is above 2i and 2i + 1
  std::vector<uint32_t> by_begin_;            // all buffers of the problem
  std::vector<size_t> begins_;  // [times + 1]; where those that begin at a time are in by_begin_
  std::vector<char> is_placed_;
};

}  // namespace coppice::plan
