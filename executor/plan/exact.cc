// The exact planner (see exact.h).
#include "executor/plan/exact.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>

#include "core/check.h"
#include "executor/plan/greedy.h"
#include "executor/plan/placement_search.h"
#include "executor/plan/verify.h"

namespace coppice::plan {
namespace {

constexpr uint64_t kFirstNodes = 1000;

// A buffer comes before others that has more of what the first letter stands for, then of the next. A:
// product of size and time. B: the same by sections. N: neighbors. S: sections. T: bytes needed at the worst
// of its times. W: time. Z: size.
constexpr std::string_view kOrders[] = {"WAT", "TAW", "TWA", "ATW", "ZW", "NW", "SA", "BA", "ZT", "AW", "TZ"};

std::vector<int64_t> worst_needs(const Problem& problem, const Sections& sections) {
  std::vector<int64_t> worst(problem.buffers.size());
  for (const Section& section : sections.all) {
    int64_t sum = 0;
    for (const SectionUse& use : section) sum += use.high - use.low;
    for (const SectionUse& use : section) worst[use.buffer] = std::max(worst[use.buffer], sum);
  }
  return worst;
}

std::vector<uint32_t> ranks_of(const Problem& problem, const Sections& sections,
                               const std::vector<int64_t>& worst, std::string_view order) {
  const auto n = static_cast<uint32_t>(problem.buffers.size());
  const auto value = [&](uint32_t i, char letter) -> double {
    const Buffer& b = problem.buffers[i];
    const double time = static_cast<double>(b.end) - static_cast<double>(b.begin);
    const auto num_sections = static_cast<double>(sections.needs[i].size());
    switch (letter) {
      case 'A':
        return static_cast<double>(b.bytes) * time;
      case 'B':
        return static_cast<double>(b.bytes) * num_sections;
      case 'N':
        return static_cast<double>(sections.neighbors[i].size());
      case 'S':
        return num_sections;
      case 'T':
        return static_cast<double>(worst[i]);
      case 'W':
        return time;
      default:
        return static_cast<double>(b.bytes);
    }
  };
  std::vector<uint32_t> by_rank(n), ranks(n);
  std::iota(by_rank.begin(), by_rank.end(), 0);
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](uint32_t a, uint32_t b) {
    for (const char letter : order) {
      const double x = value(a, letter), y = value(b, letter);
      if (x != y) return x > y;
    }
    return false;
  });
  for (uint32_t rank = 0; rank < n; ++rank) ranks[by_rank[rank]] = rank;
  return ranks;
}

class Search {
 public:
  Search(const Problem& problem, const SearchOptions& options)
      : problem_(problem), options_(options), sections_(problem), search_(problem, sections_) {
    const std::vector<int64_t> worst = worst_needs(problem, sections_);
    for (const std::string_view order : kOrders) ranks_.push_back(ranks_of(problem, sections_, worst, order));
    // All plans that the search finds are sums of sizes, so that heights between multiples of what divides
    // these need no look.
    for (const Buffer& b : problem.buffers) {
      step_ = std::gcd(std::gcd(step_, b.bytes), b.alignment == 1 ? 0 : b.alignment);
      step_ = std::gcd(step_, b.offset.value_or(0));
      has_windows_ |=
          std::any_of(b.gaps.begin(), b.gaps.end(), [](const Gap& g) { return g.window.has_value(); });
    }
    step_ = has_windows_ ? 1 : std::max<int64_t>(1, step_);
    stop_ = [this, start = std::chrono::steady_clock::now()] {
      if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) return true;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      return options_.most_seconds && passed.count() >= *options_.most_seconds;
    };
  }

  void improve(Found& found) {
    found_ = &found;
    bool is_exhausted = false;  // each look was to the end
    for (uint64_t most = kFirstNodes; !is_exhausted && !is_done(); most *= 2) {
      is_exhausted = true;
      for (const std::vector<uint32_t>& ranks : ranks_) {
        for (const int64_t height : heights()) {
          if (is_done()) break;
          if (height < found_->lower_bound || height >= found_->plan.bytes) continue;
          is_exhausted &= look(height, ranks, most) != PlacementSearch::Result::kStopped;
        }
      }
    }
    if (options_.capacity && *options_.capacity < found.lower_bound) find_infeasible();
    found.nodes = search_.nodes();
  }

 private:
  bool is_out() { return search_.nodes() >= options_.most_nodes || stop_(); }
  bool is_done() {
    if (found_->is_smallest() || is_out()) return true;
    return options_.capacity &&
           (found_->plan.bytes <= *options_.capacity || found_->lower_bound > *options_.capacity);
  }
  // With a capacity, what fits it is all that counts. Else the bound may be the height of the smallest
  // plan; if it is not, plans between are to be had more easily.
  std::vector<int64_t> heights() const {
    if (options_.capacity) return {*options_.capacity};
    const int64_t low = found_->lower_bound, high = found_->plan.bytes;
    const auto part = [&](int64_t quarters) { return (low + (high - low) / 4 * quarters) / step_ * step_; };
    return {low, part(1), part(2), part(3), high - step_};
  }
  PlacementSearch::Result look(int64_t height, const std::vector<uint32_t>& ranks, uint64_t most) {
    const uint64_t left = options_.most_nodes - std::min(options_.most_nodes, search_.nodes());
    const auto result = search_.run(height, ranks, std::min(most, left), stop_);
    if (result == PlacementSearch::Result::kFound) {
      Plan plan = plan_of(problem_, search_.offsets());
      if (plan.bytes < found_->plan.bytes) found_->plan = std::move(plan);
    } else if (result == PlacementSearch::Result::kNone && !has_windows_) {
      found_->lower_bound = std::min(found_->plan.bytes, height / step_ * step_ + step_);
    }
    return result;
  }

  // Leaves out one after the other for good without which there is no plan either.
  void find_infeasible() {
    for (uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& b = problem_.buffers[i];
      if (b.offset.value_or(0) + b.bytes <= *options_.capacity) continue;
      found_->infeasible = {i};
      return;
    }
    std::vector<uint32_t> kept = sections_.searched;
    for (const uint32_t i : sections_.searched) {
      search_.leave_out(i, true);
      if (is_shown_infeasible())
        std::erase(kept, i);
      else
        search_.leave_out(i, false);
    }
    for (const uint32_t i : kept) search_.leave_out(i, false);
    for (uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      if (problem_.buffers[i].offset) kept.push_back(i);
    }
    std::sort(kept.begin(), kept.end());
    found_->infeasible = std::move(kept);
  }
  bool is_shown_infeasible() {
    constexpr uint64_t kMostEach = 20'000;
    return search_.run(*options_.capacity, ranks_.front(), kMostEach, stop_) ==
           PlacementSearch::Result::kNone;
  }

  const Problem& problem_;
  const SearchOptions& options_;
  const Sections sections_;
  PlacementSearch search_;
  std::vector<std::vector<uint32_t>> ranks_;
  int64_t step_ = 0;
  bool has_windows_ = false;
  std::function<bool()> stop_;
  Found* found_ = nullptr;
};

}  // namespace

Found search_plan(const Problem& problem, const SearchOptions& options) {
  check(problem);
  Found found{best_greedy_plan(problem), lower_bound(problem), {}, 0};
  const bool is_done = options.capacity ? found.plan.bytes <= *options.capacity : found.is_smallest();
  if (!is_done && problem.buffers.size() <= kMostSearched) Search(problem, options).improve(found);
  COPPICE_DCHECK(!find_fault(problem, found.plan), "a plan that is wrong: {}",
                 find_fault(problem, found.plan).value_or(""));
  return found;
}

}  // namespace coppice::plan
