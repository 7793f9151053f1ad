// The choice of pools (see pool_choice.h).
#include "executor/plan/pool_choice.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "executor/plan/exact.h"
#include "executor/plan/greedy.h"
#include "executor/plan/placed_buffers.h"
#include "executor/plan/time_pieces.h"

namespace coppice::plan {
namespace {

// The work that all pools together may still do.
struct Effort {
  uint64_t comparisons = 200'000'000;  // of a buffer with one that lies in a pool
  uint64_t greedy_buffers = 200'000;   // in greedy plans
  uint64_t nodes = 500'000;            // of searches
  int searches = 32;
  uint64_t used_nodes = 0;
  std::function<bool()> stop;
  bool is_stopped() const { return stop && stop(); }
};

// A pool with a capacity, and a plan of what lies in it, while it is filled.
class FillingPool {
 public:
  FillingPool(const Problem& problem, const TimePieces& pieces, int64_t capacity, Effort& effort)
      : problem_(problem), pieces_(pieces), capacity_(capacity), effort_(effort), placed_(problem) {
    offsets_.resize(problem.buffers.size());
  }

  // Begins with buffers that must lie here.
  void begin(std::vector<uint32_t> buffers) {
    for (const uint32_t i : buffers) put(i, 0);
    has_plan_ = plan_anew(buffers);
  }
  // Adds them if there is a plan, found by greedy planners, of all of them and the others.
  bool try_add_all(const std::vector<uint32_t>& added) {
    std::vector<uint32_t> all = buffers_;
    all.insert(all.end(), added.begin(), added.end());
    if (!has_plan_ || effort_.is_stopped()) return false;
    const Problem part = part_of(problem_, all);
    if (lower_bound(part) > capacity_) return false;
    const Plan plan = best_greedy_plan(part);
    if (plan.bytes <= capacity_) take(all, plan);
    return plan.bytes <= capacity_;
  }
  // Adds the buffer where a plan is found of it and the others, and returns whether there was one.
  bool try_add(uint32_t buffer) {
    if (!has_plan_ || problem_.buffers[buffer].bytes > capacity_) return false;
    if (effort_.comparisons <= num_compared(buffer)) return false;
    effort_.comparisons -= num_compared(buffer);
    const int64_t offset = lowest_free(buffer);
    if (offset + problem_.buffers[buffer].bytes <= capacity_) {
      put(buffer, offset);
      return true;
    }
    if (effort_.is_stopped() || !may_have_room(buffer)) return false;
    std::vector<uint32_t> all = buffers_;
    all.push_back(buffer);
    if (effort_.greedy_buffers < all.size()) return false;
    effort_.greedy_buffers -= all.size();
    return plan_anew(all);
  }
  // Adds a buffer that no plan is known for.
  void add(uint32_t buffer) {
    put(buffer, 0);
    has_plan_ = false;
  }

  // Returns the plan in the order of the buffers' indices.
  std::optional<Plan> plan() const {
    if (!has_plan_) return {};
    std::vector<uint32_t> sorted = buffers_;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> offsets;
    for (const uint32_t i : sorted) offsets.push_back(offsets_[i]);
    return plan_of(part_of(problem_, sorted), std::move(offsets));
  }

 private:
  void put(uint32_t buffer, int64_t offset) {
    buffers_.push_back(buffer);
    offsets_[buffer] = offset;
    placed_.add(buffer);
  }
  void take(const std::vector<uint32_t>& all, const Plan& plan) {  // those that are here come first
    for (size_t i = 0; i < all.size(); ++i) {
      if (i < buffers_.size())
        offsets_[all[i]] = plan.offsets[i];
      else
        put(all[i], plan.offsets[i]);
    }
  }
  // Either all that are here are compared, or those that begin within the buffer's time and few others.
  bool goes_by_time(uint32_t buffer) const { return placed_.num_begun_within(buffer) < buffers_.size(); }
  size_t num_compared(uint32_t buffer) const {
    return std::min(placed_.num_begun_within(buffer), buffers_.size());
  }
  // Returns the lowest offset at which the buffer is in no one's way, and remembers who lies beside it.
  int64_t lowest_free(uint32_t buffer) {
    const Buffer& b = problem_.buffers[buffer];
    beside_.clear();
    taken_.clear();
    const auto add = [&](uint32_t i) {
      const Buffer& other = problem_.buffers[i];
      if (other.end <= b.begin || b.end <= other.begin) return;
      beside_.push_back(i);
      const auto [above, below] = pieces_.distances(buffer, i);
      if (above) taken_.emplace_back(offsets_[i] - *above, offsets_[i] + *below);
    };
    if (goes_by_time(buffer))
      placed_.visit_beside(buffer, add);
    else
      std::for_each(buffers_.begin(), buffers_.end(), add);
    effort_.comparisons -= std::min<uint64_t>(effort_.comparisons, beside_.size());
    std::sort(taken_.begin(), taken_.end());
    int64_t free = 0;
    for (const auto& [low, high] : taken_) {  // offsets strictly between are taken
      if (free <= low) break;
      free = std::max(free, align_up(std::max<int64_t>(high, 0), b.alignment));
    }
    return free;
  }
  // Returns whether what is needed at each time of the buffer's is there.
  bool may_have_room(uint32_t buffer) {
    constexpr uint64_t kCost = 32;  // what it takes for each, in comparisons
    beside_.push_back(buffer);
    if (effort_.comparisons < kCost * beside_.size()) return false;
    effort_.comparisons -= kCost * beside_.size();
    return lower_bound(part_of(problem_, beside_)) <= capacity_;
  }
  // Takes a plan of these that is found within the capacity.
  bool plan_anew(const std::vector<uint32_t>& all) {
    const Problem part = part_of(problem_, all);
    Plan plan = best_greedy_plan(part);
    if (plan.bytes > capacity_) plan = searched(part, std::move(plan));
    if (plan.bytes <= capacity_) take(all, plan);
    return plan.bytes <= capacity_;
  }
  Plan searched(const Problem& part, Plan plan) {
    constexpr size_t kMostBuffers = 512;  // what a search makes before it begins is worth its while
    constexpr uint64_t kMostEach = 50'000;
    if (part.buffers.size() > kMostBuffers || lower_bound(part) > capacity_) return plan;
    if (effort_.searches == 0 || effort_.nodes == 0 || effort_.is_stopped()) return plan;
    --effort_.searches;
    Found found =
        search_plan(part, {.capacity = capacity_, .most_nodes = std::min(kMostEach, effort_.nodes)});
    effort_.nodes -= std::min(found.nodes, effort_.nodes);
    effort_.used_nodes += found.nodes;
    return std::move(found.plan);
  }

  const Problem& problem_;
  const TimePieces& pieces_;
  const int64_t capacity_;
  Effort& effort_;
  std::vector<uint32_t> buffers_;
  PlacedBuffers placed_;          // the same
  std::vector<int64_t> offsets_;  // [buffers of the problem]: of these, while there is a plan
  bool has_plan_ = false;
  std::vector<uint32_t> beside_;                    // of the buffer that was looked at last
  std::vector<std::pair<int64_t, int64_t>> taken_;  // offsets, of that one
};

double area_of(const std::vector<TimePieces::Piece>& pieces) {
  double area = 0;
  for (const TimePieces::Piece& p : pieces)
    area += static_cast<double>(p.high - p.low) * (static_cast<double>(p.end) - static_cast<double>(p.begin));
  return area;
}

class Choice {
 public:
  Choice(const Problem& problem, const Pools& pools, uint64_t most_nodes, const std::function<bool()>& stop)
      : problem_(problem), pools_(pools), pieces_(problem) {
    effort_.nodes = std::min(effort_.nodes, most_nodes);
    effort_.stop = stop;
  }

  PoolChoice choose() {
    chosen_.pools.resize(problem_.buffers.size());
    std::vector<uint32_t> free;
    std::vector<std::vector<uint32_t>> bound(pools_.all.size());
    for (uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      const std::vector<uint32_t>& choices = pools_.choices[i];
      chosen_.pools[i] = choices.front();
      if (choices.size() > 1)
        free.push_back(i);
      else
        bound[choices.front()].push_back(i);
    }
    make_pools(free, bound);
    std::vector<std::pair<bool, double>> keys(problem_.buffers.size());  // the lowest first
    for (const uint32_t i : free) keys[i] = {may_lie_anywhere(i), -area_of(pieces_.of(i))};
    std::stable_sort(free.begin(), free.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    std::erase_if(free,
                  [&, taken = take_whole_pools(free)](uint32_t i) { return taken[pools_.choices[i][0]]; });
    for (const uint32_t i : free) chosen_.pools[i] = pool_for(i);
    for (const FillingPool* pool : filling_)
      chosen_.plans.push_back(pool != nullptr ? pool->plan() : std::nullopt);
    chosen_.nodes = effort_.used_nodes;
    return std::move(chosen_);
  }

 private:
  // Returns whether one of its pools has no capacity.
  bool may_lie_anywhere(uint32_t buffer) const {
    const std::vector<uint32_t>& choices = pools_.choices[buffer];
    return std::any_of(choices.begin(), choices.end(), [&](uint32_t p) { return !pools_.all[p].capacity; });
  }
  // Only pools that have a capacity and get buffers that have a choice are filled one by one.
  void make_pools(const std::vector<uint32_t>& free, std::vector<std::vector<uint32_t>>& bound) {
    filling_.resize(pools_.all.size());
    for (const uint32_t i : free) {
      for (const uint32_t pool : pools_.choices[i]) {
        if (!pools_.all[pool].capacity || filling_[pool] != nullptr) continue;
        filling_[pool] = &made_.emplace_back(problem_, pieces_, *pools_.all[pool].capacity, effort_);
        filling_[pool]->begin(std::move(bound[pool]));
      }
    }
  }
  // Fills pools that have room for all that would rather lie there, if no buffer may lie in pools with a
  // capacity alone, which would come first. Returns of each pool whether it was filled.
  std::vector<char> take_whole_pools(const std::vector<uint32_t>& free) {
    std::vector<char> taken(pools_.all.size());
    if (!std::all_of(free.begin(), free.end(), [&](uint32_t i) { return may_lie_anywhere(i); })) return taken;
    std::vector<std::vector<uint32_t>> preferring(pools_.all.size());
    for (const uint32_t i : free) preferring[pools_.choices[i].front()].push_back(i);
    for (size_t p = 0; p < taken.size(); ++p)
      taken[p] = preferring[p].empty() || (filling_[p] != nullptr && filling_[p]->try_add_all(preferring[p]));
    return taken;
  }
  uint32_t pool_for(uint32_t buffer) {
    const std::vector<uint32_t>& choices = pools_.choices[buffer];
    for (const uint32_t pool : choices) {
      if (filling_[pool] == nullptr || filling_[pool]->try_add(buffer)) return pool;
    }
    filling_[choices.back()]->add(buffer);
    return choices.back();
  }

  const Problem& problem_;
  const Pools& pools_;
  const TimePieces pieces_;
  Effort effort_;
  std::deque<FillingPool> made_;
  std::vector<FillingPool*>
      filling_;  // [pools]; null: what has no capacity, or takes no one who has a choice
  PoolChoice chosen_;
};

}  // namespace

PoolChoice choose_pools(const Problem& problem, const Pools& pools, uint64_t most_nodes,
                        const std::function<bool()>& stop) {
  check(problem, pools);
  return Choice(problem, pools, most_nodes, stop).choose();
}

}  // namespace coppice::plan
