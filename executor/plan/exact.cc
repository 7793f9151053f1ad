// The exact planner (see exact.h).
#include "executor/plan/exact.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/check.h"
#include "executor/plan/fusion.h"
#include "executor/plan/greedy.h"
#include "executor/plan/placement_search.h"
#include "executor/plan/verify.h"

namespace coppice::plan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kFirstNodes = 1000;
constexpr double kBuffersOfAFullStep = 256;
// Without a capacity, arms look at heights below the smallest plan of the round before.
constexpr size_t kArmsPerRound = 4;
constexpr size_t kOrdersOfFusions = 3;

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

// A problem that is searched: the one that was given, or one whose plans are plans of it.
struct Model {
  Model(const Problem& problem_in, const Fusion* fusion_in)
      : problem(problem_in), fusion(fusion_in), sections(problem) {}
  const Problem& problem;
  const Fusion* fusion;  // null: it is the one that was given
  const Sections sections;
};

// The two bounds that are known when arms begin to look.
struct Known {
  int64_t lower_bound = 0, bytes = 0;  // no plan needs less than the one; a plan needs the other
};

// One way to search, which remembers what has no plan. Arms know nothing of each other while they look, so
// that what each one finds does not depend on which threads they run on, or when.
class Arm {
 public:
  Arm(const Model& model, bool goes_by_room, std::string_view order, const std::vector<int64_t>& worst)
      : model_(model),
        search_(model.problem, model.sections),
        order_{goes_by_room, ranks_of(model.problem, model.sections, worst, order)} {}

  bool looks_at(int64_t height, const Known& known) const {
    return height >= known.lower_bound && height < known.bytes && height > none_up_to_;
  }
  struct Outcome {
    Known known;
    std::vector<int64_t> offsets;  // of the problem that was given; empty where no smaller plan was found
    uint64_t nodes = 0;
    bool is_stopped = false;  // a look did not come to its end
  };
  // Looks for plans of each height that may be one of a smaller plan, with so many nodes for each, and for
  // all.
  Outcome look(const std::vector<int64_t>& heights, const Known& known, int64_t step, bool proves,
               uint64_t most_each, uint64_t most_nodes, const std::function<bool()>& stop) {
    Outcome outcome{known, {}, 0, false};
    for (const int64_t height : heights) {
      if (!looks_at(height, outcome.known)) continue;
      const uint64_t left = most_nodes - outcome.nodes;
      if (left == 0) outcome.is_stopped = true;
      if (left == 0 || stop()) break;
      const auto result = search_.run(height, order_, std::min(most_each, left), stop);
      outcome.nodes += search_.nodes();
      outcome.is_stopped |= result == PlacementSearch::Result::kStopped;
      if (result == PlacementSearch::Result::kFound) {
        outcome.offsets =
            model_.fusion == nullptr ? search_.offsets() : model_.fusion->offsets_of(search_.offsets());
        outcome.known.bytes = std::min(outcome.known.bytes, bytes_of(search_.offsets()));
      } else if (result == PlacementSearch::Result::kNone) {
        none_up_to_ = height;
        if (proves && model_.fusion == nullptr)
          outcome.known.lower_bound = std::min(outcome.known.bytes, height / step * step + step);
      }
    }
    return outcome;
  }

 private:
  int64_t bytes_of(const std::vector<int64_t>& offsets) const {
    return plan_of(model_.problem, offsets).bytes;
  }

  const Model& model_;
  PlacementSearch search_;
  const PlacementSearch::Order order_;
  int64_t none_up_to_ = -1;
};

class Search {
 public:
  Search(const Problem& problem, const SearchOptions& options, Clock::time_point start)
      : problem_(problem), options_(options), most_nodes_(options.most_nodes) {
    // A step's time grows with the square of the number of buffers (measured: 15 us for 256, 3 ms for 4,000).
    const double times = static_cast<double>(problem.buffers.size()) / kBuffersOfAFullStep;
    if (times > 1) most_nodes_ = static_cast<uint64_t>(static_cast<double>(most_nodes_) / (times * times));
    // All plans that the search finds are sums of sizes, so that heights between multiples of what divides
    // these need no look.
    for (const Buffer& b : problem.buffers) {
      step_ = std::gcd(std::gcd(step_, b.bytes), b.alignment == 1 ? 0 : b.alignment);
      step_ = std::gcd(step_, b.offset.value_or(0));
      has_windows_ |=
          std::any_of(b.gaps.begin(), b.gaps.end(), [](const Gap& g) { return g.window.has_value(); });
    }
    step_ = has_windows_ ? 1 : std::max<int64_t>(1, step_);
    stop_ = [this, start] {
      if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) return true;
      const std::chrono::duration<double> passed = Clock::now() - start;
      return options_.most_seconds && passed.count() >= *options_.most_seconds;
    };
    make_arms();
  }

  void improve(Found& found) {
    found_ = &found;
    const size_t round = options_.capacity ? arms_.size() : kArmsPerRound;
    bool is_exhausted = false;  // each look was to the end
    for (uint64_t most = kFirstNodes; !is_exhausted && !is_done(); most *= 2) {
      is_exhausted = true;
      for (size_t begin = 0; begin < arms_.size() && !is_done(); begin += round)
        is_exhausted &= run_round(begin, std::min(begin + round, arms_.size()), most);
    }
    if (options_.capacity && *options_.capacity < found.lower_bound) find_infeasible();
  }

 private:
  void make_arms() {
    models_.emplace_back(problem_, nullptr);
    for (const Fuse what : {Fuse::kInTimeAndBytes, Fuse::kInTime}) {
      fusions_.push_back(fuse(problem_, what));
      const bool is_new = fusions_.back().problem.buffers.size() < problem_.buffers.size() &&
                          (fusions_.size() == 1 ||
                           fusions_.back().problem.buffers.size() > fusions_.front().problem.buffers.size());
      if (is_new) models_.emplace_back(fusions_.back().problem, &fusions_.back());
    }
    std::vector<std::vector<int64_t>> worst;
    for (const Model& model : models_) worst.push_back(worst_needs(model.problem, model.sections));
    for (size_t i = 0; i < std::size(kOrders); ++i) {
      for (size_t m = i < kOrdersOfFusions ? models_.size() : 1; m-- > 0;) {
        for (const bool goes_by_room : {false, true})
          arms_.push_back(std::make_unique<Arm>(models_[m], goes_by_room, kOrders[i], worst[m]));
      }
    }
  }

  bool is_out() { return found_->nodes >= most_nodes_ || stop_(); }
  bool is_done() { return is_decided({found_->lower_bound, found_->plan.bytes}) || is_out(); }
  bool is_decided(const Known& known) const {
    if (known.bytes <= known.lower_bound) return true;
    return options_.capacity && (known.bytes <= *options_.capacity || known.lower_bound > *options_.capacity);
  }
  // With a capacity, what fits it is all that counts. Else the bound may be the height of the smallest
  // plan; if it is not, plans between are to be had more easily.
  std::vector<int64_t> heights() const {
    if (options_.capacity) return {*options_.capacity};
    const int64_t low = found_->lower_bound, high = found_->plan.bytes;
    const auto part = [&](int64_t quarters) { return (low + (high - low) / 4 * quarters) / step_ * step_; };
    return {low, part(1), part(2), part(3), high - step_};
  }

  // Lets these arms look, on as many threads as there may be, and takes what they found in their order, up to
  // the first one that decides all. Returns whether each look came to its end.
  bool run_round(size_t begin, size_t end, uint64_t most_each) {
    const std::vector<int64_t> all_heights = heights();
    const Known known{found_->lower_bound, found_->plan.bytes};
    std::vector<Arm*> arms;  // those that have something left to look at
    for (size_t i = begin; i < end; ++i) {
      const auto looks = [&](int64_t height) { return arms_[i]->looks_at(height, known); };
      if (std::any_of(all_heights.begin(), all_heights.end(), looks)) arms.push_back(arms_[i].get());
    }
    if (arms.empty()) return true;
    const uint64_t left = most_nodes_ - found_->nodes, most = most_each * all_heights.size();
    std::vector<Arm::Outcome> outcomes(arms.size());
    std::atomic<size_t> next = 0, first_to_decide = outcomes.size();
    const auto work = [&] {
      for (size_t i = next++; i < outcomes.size(); i = next++) {
        const auto stop = [&] { return first_to_decide < i || stop_(); };
        if (stop()) continue;
        const uint64_t used = std::min(left, most * i);  // by those before it, at most
        outcomes[i] = arms[i]->look(all_heights, known, step_, !has_windows_, most_each,
                                    std::min(most, left - used), stop);
        if (!is_decided(outcomes[i].known)) continue;
        size_t first = first_to_decide;
        while (i < first && !first_to_decide.compare_exchange_weak(first, i)) {
        }
      }
    };
    run_on_threads(std::min<size_t>(outcomes.size(), std::max(1, options_.threads)), work);
    bool is_exhausted = true;
    for (size_t i = 0; i <= std::min(first_to_decide.load(), outcomes.size() - 1); ++i) {
      is_exhausted &= !outcomes[i].is_stopped && outcomes[i].known.bytes > 0;
      take(outcomes[i]);
    }
    return is_exhausted;
  }
  static void run_on_threads(size_t num_threads, const std::function<void()>& work) {
    std::vector<std::jthread> threads;
    try {
      while (threads.size() + 1 < num_threads) threads.emplace_back(work);
    } catch (const std::system_error&) {  // there are no more to be had
    }
    work();
  }
  void take(const Arm::Outcome& outcome) {
    found_->nodes += outcome.nodes;
    found_->lower_bound = std::max(found_->lower_bound, outcome.known.lower_bound);
    if (outcome.offsets.empty()) return;
    Plan plan = plan_of(problem_, outcome.offsets);
    if (plan.bytes < found_->plan.bytes) found_->plan = std::move(plan);
    found_->lower_bound = std::min(found_->lower_bound, found_->plan.bytes);
  }

  // Leaves out one after the other for good without which there is no plan either.
  void find_infeasible() {
    constexpr uint64_t kMostEach = 20'000;
    for (uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      const Buffer& b = problem_.buffers[i];
      if (b.offset.value_or(0) + b.bytes <= *options_.capacity) continue;
      found_->infeasible = {i};
      return;
    }
    const Sections& sections = models_.front().sections;
    PlacementSearch search(problem_, sections);
    const PlacementSearch::Order order{
        false, ranks_of(problem_, sections, worst_needs(problem_, sections), kOrders[0])};
    std::vector<uint32_t> kept = sections.searched;
    for (const uint32_t i : sections.searched) {
      search.leave_out(i, true);
      if (search.run(*options_.capacity, order, kMostEach, stop_) == PlacementSearch::Result::kNone)
        std::erase(kept, i);
      else
        search.leave_out(i, false);
    }
    for (uint32_t i = 0; i < problem_.buffers.size(); ++i) {
      if (problem_.buffers[i].offset) kept.push_back(i);
    }
    std::sort(kept.begin(), kept.end());
    found_->infeasible = std::move(kept);
  }

  const Problem& problem_;
  const SearchOptions& options_;
  uint64_t most_nodes_;
  std::deque<Fusion> fusions_;
  std::deque<Model> models_;
  std::vector<std::unique_ptr<Arm>> arms_;
  int64_t step_ = 0;
  bool has_windows_ = false;
  std::function<bool()> stop_;
  Found* found_ = nullptr;
};

}  // namespace

Found search_plan(const Problem& problem, const SearchOptions& options) {
  const Clock::time_point start = Clock::now();
  check(problem);
  Found found{best_greedy_plan(problem), lower_bound(problem), {}, 0};
  const bool is_done = options.capacity ? found.plan.bytes <= *options.capacity : found.is_smallest();
  if (!is_done && problem.buffers.size() <= kMostSearched) Search(problem, options, start).improve(found);
  COPPICE_DCHECK(!find_fault(problem, found.plan), "a plan that is wrong: {}",
                 find_fault(problem, found.plan).value_or(""));
  return found;
}

}  // namespace coppice::plan
