// Is there a plan within a capacity? (See placement_search.h.)
#include "executor/plan/placement_search.h"

#include <algorithm>

namespace coppice::plan {
namespace {

constexpr uint64_t kNodesPerQuestion = 64;  // whether to stop

}  // namespace

PlacementSearch::PlacementSearch(const Problem& problem, const Sections& sections)
    : problem_(problem),
      sections_(sections),
      fixed_(sections.all.size()),
      fixed_beside_(problem.buffers.size()),
      is_left_out_(problem.buffers.size()) {
  for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    if (!b.offset) continue;
    highest_fixed_ = std::max(highest_fixed_, *b.offset + b.bytes);
    for (const Neighbor& n : sections.neighbors[i])
      fixed_beside_[n.buffer].push_back({*b.offset - n.this_above, *b.offset + n.its_above});
  }
  for (size_t s = 0; s < fixed_.size(); ++s) {
    for (const SectionUse& use : sections.all[s]) {
      const std::optional<int64_t> at = problem.buffers[use.buffer].offset;
      if (at) fixed_[s].push_back({*at + use.low, *at + use.high});
    }
  }
  for (std::vector<Span>& spans : fixed_beside_)
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.low < b.low; });
}

PlacementSearch::Result PlacementSearch::run(int64_t capacity, const Order& order, uint64_t most_nodes,
                                             const std::function<bool()>& stop) {
  order_ = &order, stop_ = &stop;
  nodes_ = 0, most_nodes_ = most_nodes;
  is_stopped_ = false;
  Group all;
  if (begin(capacity, all) && solve(all)) return Result::kFound;
  return is_stopped_ ? Result::kStopped : Result::kNone;
}

// Returns false where there can be no plan.
bool PlacementSearch::begin(int64_t capacity, Group& all) {
  if (capacity > nogoods_capacity_) nogoods_.clear();  // they hold for less
  nogoods_capacity_ = capacity_ = capacity;
  const size_t n = problem_.buffers.size();
  low_.assign(n, 0), must_rest_.assign(n, 0), is_placed_.assign(n, 1);
  left_.assign(sections_.all.size(), 0), rooms_.resize(left_.size());
  trail_.clear();
  for (uint32_t i = 0; i < n; ++i) low_[i] = problem_.buffers[i].offset.value_or(0);
  for (const uint32_t i : sections_.searched) {
    if (is_left_out_[i]) continue;
    all.push_back(i);
    is_placed_[i] = 0;
    low_[i] = free_from(i, 0);
    if (low_[i] + problem_.buffers[i].bytes > capacity) return false;
  }
  for (size_t s = 0; s < left_.size(); ++s) {
    for (const SectionUse& use : sections_.all[s]) {
      if (!is_placed_[use.buffer]) left_[s] += use.high - use.low;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](uint32_t a, uint32_t b) { return sections_.first[a] < sections_.first[b]; });
  return highest_fixed_ <= capacity;
}

bool PlacementSearch::solve(const Group& group) {
  if (group.empty()) return true;
  return is_whole(group) ? solve_group(group) : solve_parts(group);
}

// Returns whether no time separates some of them from the others.
bool PlacementSearch::is_whole(const Group& group) const {
  uint32_t reached = sections_.last[group.front()];
  for (const uint32_t i : group) {
    if (sections_.first[i] > reached) return false;
    reached = std::max(reached, sections_.last[i]);
  }
  return true;
}

std::vector<PlacementSearch::Group> PlacementSearch::parts_of(const Group& group) const {
  std::vector<Group> parts;
  uint32_t reached = 0;
  for (const uint32_t i : group) {
    if (parts.empty() || sections_.first[i] > reached) parts.emplace_back();
    parts.back().push_back(i);
    reached = std::max(reached, sections_.last[i]);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Group& a, const Group& b) { return a.size() < b.size(); });
  return parts;
}

// The smallest go first: they are the soonest to show that there is no plan.
bool PlacementSearch::solve_parts(const Group& group) {
  const std::vector<Group> parts = parts_of(group);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (solve_group(parts[p])) continue;
    for (size_t done = 0; done < p; ++done) {
      for (const uint32_t i : parts[done]) take_back(i);
    }
    return false;  // who called undoes the rest
  }
  return true;
}

bool PlacementSearch::solve_group(const Group& group) {
  const size_t mark = trail_.size();
  std::vector<Nogoods::Key> states;
  for (;;) {
    ++nodes_;
    if (nodes_ >= most_nodes_ || (nodes_ % kNodesPerQuestion == 0 && *stop_ && (*stop_)())) {
      is_stopped_ = true;
      break;
    }
    if (!raise(group) || !has_room(group)) break;
    const Nogoods::Key key = key_of(group);
    if (nogoods_.contains(key)) break;
    states.push_back(key);
    const std::optional<uint32_t> next = choose(group);
    if (!next) break;
    if (try_place(*next, group)) return true;
    if (is_stopped_) break;
    set(*next, low_[*next] + 1, true);
  }
  undo(mark);
  if (!is_stopped_) {
    for (const Nogoods::Key& state : states) nogoods_.insert(state);
  }
  return false;
}

bool PlacementSearch::try_place(uint32_t buffer, const Group& group) {
  const size_t mark = trail_.size();
  place(buffer);
  Group rest;
  rest.reserve(group.size() - 1);
  for (const uint32_t i : group) {
    if (i != buffer) rest.push_back(i);
  }
  if (solve(rest)) return true;
  undo(mark);
  take_back(buffer);
  return false;
}

void PlacementSearch::place(uint32_t buffer) {
  is_placed_[buffer] = 1;
  for (const Need& need : sections_.needs[buffer]) left_[need.section] -= need.bytes;
  for (const Neighbor& n : sections_.neighbors[buffer]) {
    if (is_placed_[n.buffer]) continue;
    const int64_t on_top = free_from(n.buffer, low_[buffer] + n.its_above);
    if (low_[n.buffer] <= on_top) set(n.buffer, on_top, false);
  }
}

void PlacementSearch::take_back(uint32_t buffer) {
  is_placed_[buffer] = 0;
  for (const Need& need : sections_.needs[buffer]) left_[need.section] += need.bytes;
}

void PlacementSearch::set(uint32_t buffer, int64_t low, bool must_rest) {
  trail_.push_back({buffer, low_[buffer], must_rest_[buffer] != 0});
  low_[buffer] = low, must_rest_[buffer] = must_rest;
}

void PlacementSearch::undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Undo& u = trail_.back();
    low_[u.buffer] = u.low, must_rest_[u.buffer] = u.must_rest;
  }
}

bool PlacementSearch::raise(const Group& group) {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const uint32_t i : group) {
      if (must_rest_[i] && !raise_one(i, has_changed)) return false;
    }
  }
  return true;
}

// It rests on one that is left, or on one that has an offset of its own.
bool PlacementSearch::raise_one(uint32_t buffer, bool& has_changed) {
  int64_t support = INT64_MAX, fixed = INT64_MAX;
  for (const Neighbor& n : sections_.neighbors[buffer]) {
    if (!is_placed_[n.buffer]) support = std::min(support, low_[n.buffer] + n.this_above);
  }
  for (const Span& span : fixed_beside_[buffer]) {
    if (span.high >= low_[buffer]) fixed = std::min(fixed, span.high);
  }
  if (std::min(support, fixed) == INT64_MAX) return false;
  const int64_t low = free_from(buffer, std::max(low_[buffer], std::min(support, fixed)));
  if (low + problem_.buffers[buffer].bytes > capacity_) return false;
  const bool must_rest = support < fixed;
  has_changed |= low > low_[buffer];
  if (low > low_[buffer] || !must_rest) set(buffer, low, must_rest);
  return true;
}

int64_t PlacementSearch::free_from(uint32_t buffer, int64_t low) const {
  const int64_t alignment = problem_.buffers[buffer].alignment;
  int64_t at = alignment == 1 ? low : align_up(low, alignment);
  for (const Span& span : fixed_beside_[buffer]) {
    if (span.low < at && at < span.high) at = align_up(span.high, alignment);
  }
  return at;
}

int64_t PlacementSearch::fixed_above(uint32_t section, int64_t low) const {
  int64_t bytes = 0;
  for (const Span& span : fixed_[section]) bytes += std::max<int64_t>(0, span.high - std::max(span.low, low));
  return bytes;
}

// Returns whether what is left has room at each time above the lowest of its lowest offsets.
bool PlacementSearch::has_room(const Group& group) {
  uint32_t end = 0;
  for (const uint32_t i : group) end = std::max(end, sections_.last[i]);
  for (uint32_t s = sections_.first[group.front()]; s <= end; ++s) {
    if (left_[s] == 0) continue;
    int64_t lowest = INT64_MAX;
    for (const SectionUse& use : sections_.all[s]) {
      if (!is_placed_[use.buffer]) lowest = std::min(lowest, low_[use.buffer] + use.low);
    }
    const int64_t most = capacity_ - left_[s] - fixed_above(s, lowest);
    if (lowest > most) return false;
    rooms_[s] = {lowest, most, 0};
  }
  return true;
}

Nogoods::Key PlacementSearch::key_of(const Group& group) const {
  Nogoods::Key key;
  for (const uint32_t i : group)
    key.add(i, static_cast<uint64_t>(low_[i]) * 2 + static_cast<uint64_t>(must_rest_[i]));
  return key;
}

std::optional<uint32_t> PlacementSearch::choose(const Group& group) {
  if (order_->goes_by_room) {
    if (const std::optional<uint32_t> best = choose_by_room(group)) return best;
  }
  std::optional<uint32_t> best;
  for (const uint32_t i : group) {
    if (!must_rest_[i] && goes_before(i, best) && is_lowest(i)) best = i;
  }
  return best;
}

bool PlacementSearch::goes_before(uint32_t buffer, std::optional<uint32_t> other) const {
  if (!other || low_[buffer] != low_[*other]) return !other || low_[buffer] < low_[*other];
  return order_->ranks[buffer] < order_->ranks[*other];
}

// Among times at which equally few could lie lowest, the one with the deepest valley counts.
std::optional<uint32_t> PlacementSearch::choose_by_room(const Group& group) {
  uint32_t end = 0;
  for (const uint32_t i : group) end = std::max(end, sections_.last[i]);
  std::optional<uint32_t> best;
  const Room* best_room = nullptr;
  for (uint32_t s = sections_.first[group.front()]; s <= end; ++s) {
    if (left_[s] == 0) continue;
    Room& room = rooms_[s];
    std::optional<uint32_t> one;
    room.first = 0;
    for (const SectionUse& use : sections_.all[s]) {
      const uint32_t i = use.buffer;
      if (is_placed_[i] || low_[i] + use.low > room.most) continue;
      ++room.first;
      if (!must_rest_[i] && goes_before(i, one)) one = i;
    }
    if (!one || (best && !goes_before(room, *one, *best_room, *best)) || !is_lowest(*one)) continue;
    best = one, best_room = &room;
  }
  return best;
}

bool PlacementSearch::goes_before(const Room& room, uint32_t buffer, const Room& other_room,
                                  uint32_t other) const {
  if (room.first != other_room.first) return room.first < other_room.first;
  if (room.lowest != other_room.lowest) return room.lowest < other_room.lowest;
  return order_->ranks[buffer] < order_->ranks[other];
}

// Returns whether none that is left can come below it.
bool PlacementSearch::is_lowest(uint32_t buffer) const {
  const std::vector<Neighbor>& all = sections_.neighbors[buffer];
  return std::all_of(all.begin(), all.end(), [&](const Neighbor& n) {
    return is_placed_[n.buffer] || low_[n.buffer] + n.this_above > low_[buffer];
  });
}

}  // namespace coppice::plan
