// Buffers by their times (see placed_buffers.h).
#include "executor/plan/placed_buffers.h"

#include <algorithm>
#include <numeric>

namespace coppice::plan {

PlacedBuffers::PlacedBuffers(const Problem& problem) : is_placed_(problem.buffers.size()) {
  const size_t n = problem.buffers.size();
  std::vector<int64_t> times;
  for (const Buffer& b : problem.buffers) times.push_back(b.begin), times.push_back(b.end);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  num_times_ = std::max<size_t>(1, times.size());
  const auto count_of = [&](int64_t time) {
    return static_cast<size_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (const Buffer& b : problem.buffers)
    first_.push_back(count_of(b.begin)), last_.push_back(count_of(b.end));
  nodes_.resize(2 * num_times_);
  by_begin_.resize(n);
  std::iota(by_begin_.begin(), by_begin_.end(), 0);
  std::stable_sort(by_begin_.begin(), by_begin_.end(),
                   [&](uint32_t a, uint32_t b) { return first_[a] < first_[b]; });
  begins_.assign(num_times_ + 1, 0);
  for (const size_t first : first_) ++begins_[first + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
}

void PlacedBuffers::add(uint32_t buffer) {
  is_placed_[buffer] = 1;
  size_t low = first_[buffer] + num_times_, high = last_[buffer] + num_times_;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) nodes_[low++].push_back(buffer);
    if (high % 2 == 1) nodes_[--high].push_back(buffer);
  }
}

}  // namespace coppice::plan
