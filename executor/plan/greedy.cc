// Greedy planners (see greedy.h).
#include "executor/plan/greedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "executor/plan/placed_buffers.h"
#include "executor/plan/time_pieces.h"

namespace coppice::plan {
namespace {

constexpr uint64_t kMostPairs = 20'000'000;

// Holds the highest byte that is taken at each time, over all times: a tree whose nodes hold the highest of
// what was put over all of their times, and of what is below them.
class Skyline {
 public:
  explicit Skyline(size_t num_times) : size_(std::bit_ceil(num_times)), over_(2 * size_), top_(2 * size_) {}
  int64_t top(size_t first, size_t last) const {
    int64_t top = 0;
    for (size_t low = first + size_, high = last + size_; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) top = std::max(top, top_[low++]);
      if (high % 2 == 1) top = std::max(top, top_[--high]);
    }
    for (size_t node = first + size_; node > 0; node /= 2) top = std::max(top, over_[node]);
    for (size_t node = last - 1 + size_; node > 0; node /= 2) top = std::max(top, over_[node]);
    return top;
  }
  void put(size_t first, size_t last, int64_t top) {
    for (size_t low = first + size_, high = last + size_; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) put_on(low++, top);
      if (high % 2 == 1) put_on(--high, top);
    }
    for (size_t node : {(first + size_) / 2, (last - 1 + size_) / 2}) {
      for (; node > 0; node /= 2) top_[node] = std::max(top_[node], top);
    }
  }

 private:
  void put_on(size_t node, int64_t top) {
    over_[node] = std::max(over_[node], top);
    top_[node] = std::max(top_[node], top);
  }
  const size_t size_;
  std::vector<int64_t> over_, top_;
};

class Greedy {
 public:
  Greedy(const Problem& problem, Fit fit)
      : problem_(problem), fit_(fit), pieces_(problem), placed_(problem), offsets_(problem.buffers.size()) {}

  Plan plan(const std::vector<uint32_t>& order) {
    for (const uint32_t i : order) {
      if (problem_.buffers[i].offset) put_fixed(i);
    }
    size_t at = 0;
    for (; at < order.size() && pairs_ < kMostPairs; ++at) {
      if (!problem_.buffers[order[at]].offset) put(order[at], lowest_free(order[at]));
    }
    if (at < order.size()) put_on_top({order.begin() + static_cast<ptrdiff_t>(at), order.end()}, order);
    return plan_of(problem_, std::move(offsets_));
  }

 private:
  // Offsets strictly between these two are taken by another buffer.
  using Taken = std::pair<int64_t, int64_t>;

  void put(uint32_t i, int64_t offset) {
    offsets_[i] = offset;
    placed_.add(i);
  }
  void put_fixed(uint32_t i) {
    find_taken(i);
    const int64_t offset = *problem_.buffers[i].offset;
    for (const auto& [low, high] : taken_) {
      if (low < offset && offset < high)
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("buffer '{}': at its offset {} it would overlap another that has an offset",
                                problem_.buffers[i].id, offset));
    }
    put(i, offset);
  }
  void find_taken(uint32_t i) {
    taken_.clear();
    placed_.visit_beside(i, [&](uint32_t other) {
      ++pairs_;
      const auto [above, below] = pieces_.distances(i, other);
      if (above) taken_.emplace_back(offsets_[other] - *above, offsets_[other] + *below);
    });
    std::sort(taken_.begin(), taken_.end());
  }
  int64_t lowest_free(uint32_t i) {
    const int64_t alignment = problem_.buffers[i].alignment;
    find_taken(i);
    int64_t from = 0, best = -1, smallest = INT64_MAX;
    for (const auto& [low, high] : taken_) {
      if (from <= low && low - from < smallest) {
        best = from, smallest = low - from;
        if (fit_ == Fit::kLowest) break;
      }
      from = std::max(from, align_up(std::max<int64_t>(high, 0), alignment));
    }
    return best >= 0 ? best : from;
  }
  void put_on_top(const std::vector<uint32_t>& rest, const std::vector<uint32_t>& all) {
    Skyline skyline(placed_.num_times());
    const auto raise = [&](uint32_t i) {
      skyline.put(placed_.first(i), placed_.last(i), offsets_[i] + problem_.buffers[i].bytes);
    };
    const size_t num_placed = all.size() - rest.size();
    for (size_t k = 0; k < all.size(); ++k) {
      if (k < num_placed || problem_.buffers[all[k]].offset) raise(all[k]);
    }
    for (const uint32_t i : rest) {
      if (problem_.buffers[i].offset) continue;
      offsets_[i] = align_up(skyline.top(placed_.first(i), placed_.last(i)), problem_.buffers[i].alignment);
      raise(i);
    }
  }

  const Problem& problem_;
  const Fit fit_;
  const TimePieces pieces_;
  PlacedBuffers placed_;
  std::vector<int64_t> offsets_;
  std::vector<Taken> taken_;
  uint64_t pairs_ = 0;
};

// Returns for each buffer the most bytes that are needed at a time that it is needed at.
std::vector<int64_t> breadths(const Problem& problem) {
  const PlacedBuffers times(problem);
  std::vector<int64_t> need(times.num_times() + 1);
  const size_t n = problem.buffers.size();
  for (uint32_t i = 0; i < n; ++i) {
    need[times.first(i)] += problem.buffers[i].bytes;
    need[times.last(i)] -= problem.buffers[i].bytes;
  }
  std::partial_sum(need.begin(), need.end(), need.begin());
  Skyline skyline(times.num_times());
  for (size_t t = 0; t < times.num_times(); ++t) skyline.put(t, t + 1, need[t]);
  std::vector<int64_t> breadths;
  for (uint32_t i = 0; i < n; ++i) breadths.push_back(skyline.top(times.first(i), times.last(i)));
  return breadths;
}

std::vector<uint32_t> indices_in(const Problem& problem, Order order) {
  const std::vector<Buffer>& all = problem.buffers;
  std::vector<uint32_t> indices(all.size());
  std::iota(indices.begin(), indices.end(), 0);
  const auto sort_by = [&](const auto& key) {
    std::stable_sort(indices.begin(), indices.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  };
  const auto duration = [&](uint32_t i) {
    return static_cast<double>(all[i].end) - static_cast<double>(all[i].begin);
  };
  std::vector<int64_t> breadth;
  if (order == Order::kBreadth) breadth = breadths(problem);
  switch (order) {
    case Order::kSize:
      sort_by([&](uint32_t i) { return -all[i].bytes; });
      break;
    case Order::kBreadth:
      sort_by([&](uint32_t i) { return std::pair(-breadth[i], -all[i].bytes); });
      break;
    case Order::kArea:
      sort_by([&](uint32_t i) { return -static_cast<double>(all[i].bytes) * duration(i); });
      break;
    case Order::kTime:
      sort_by([&](uint32_t i) { return std::pair(-duration(i), -all[i].bytes); });
      break;
    case Order::kBegin:
      sort_by([&](uint32_t i) { return std::pair(all[i].begin, -all[i].bytes); });
      break;
    case Order::kHint:
      sort_by([&](uint32_t i) { return std::pair(all[i].hint.value_or(INT64_MAX), -all[i].bytes); });
      break;
  }
  return indices;
}

}  // namespace

Plan greedy_plan(const Problem& problem, Order order, Fit fit) {
  check(problem);
  return Greedy(problem, fit).plan(indices_in(problem, order));
}

Plan best_greedy_plan(const Problem& problem) {
  constexpr Order kOrders[] = {Order::kSize, Order::kBreadth, Order::kArea,
                               Order::kTime, Order::kBegin,   Order::kHint};
  const int64_t bound = lower_bound(problem);
  const bool is_large = problem.buffers.size() > 2000;
  std::optional<Plan> best;
  for (const Fit fit : {Fit::kSmallestGap, Fit::kLowest}) {
    for (const Order order : kOrders) {
      if (is_large && order != Order::kSize && order != Order::kBreadth) continue;
      Plan plan = greedy_plan(problem, order, fit);
      if (!best || plan.bytes < best->bytes) best = std::move(plan);
      if (best->bytes <= bound) return *best;
    }
  }
  return *best;
}

}  // namespace coppice::plan
