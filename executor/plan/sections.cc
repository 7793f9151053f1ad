// The times that matter (see sections.h).
#include "executor/plan/sections.h"

#include <algorithm>
#include <utility>

#include "executor/plan/time_pieces.h"

namespace coppice::plan {
namespace {

struct Change {
  int64_t time;
  bool begins;
  uint32_t use;  // its number
};

// Uses that are equal have one number, so that a look at which of them are needed now replaces searches.
struct Uses {
  Uses(const TimePieces& pieces, size_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      const auto first = static_cast<std::ptrdiff_t>(all.size());
      for (const TimePieces::Piece& p : pieces.of(i)) {
        const SectionUse use{i, p.low, p.high};
        const auto known = std::find(all.begin() + first, all.end(), use);
        const auto number = static_cast<uint32_t>(known - all.begin());
        if (known == all.end()) all.push_back(use);
        changes.push_back({p.begin, true, number}), changes.push_back({p.end, false, number});
      }
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
  }
  std::vector<SectionUse> all;
  std::vector<Change> changes;  // in the order of time
};

std::vector<Section> sections_of(const TimePieces& pieces, size_t n) {
  const Uses uses(pieces, n);
  constexpr uint32_t kNotNow = UINT32_MAX;
  std::vector<uint32_t> now, place(uses.all.size(), kNotNow);  // needed now, and where each stands there
  std::vector<std::vector<uint32_t>> all;
  std::vector<bool> is_in_last(uses.all.size());
  const auto mark_last = [&](bool is_in) {
    for (const uint32_t use : all.empty() ? std::vector<uint32_t>() : all.back()) is_in_last[use] = is_in;
  };
  const auto is_now = [&](uint32_t use) { return place[use] != kNotNow; };
  for (size_t c = 0; c < uses.changes.size();) {
    const int64_t time = uses.changes[c].time;
    size_t end = c;
    for (; end < uses.changes.size() && uses.changes[end].time == time; ++end) {
      const uint32_t use = uses.changes[end].use;
      if (uses.changes[end].begins) continue;
      place[now.back()] = place[use];
      now[place[use]] = now.back();
      now.pop_back();
      place[use] = kNotNow;
    }
    bool is_new = false;
    for (; c < end; ++c) {
      const uint32_t use = uses.changes[c].use;
      if (!uses.changes[c].begins) continue;
      place[use] = static_cast<uint32_t>(now.size());
      now.push_back(use);
      is_new = is_new || !is_in_last[use];
    }
    if (!is_new) continue;  // the last section includes all
    mark_last(false);
    while (!all.empty() && std::all_of(all.back().begin(), all.back().end(), is_now)) all.pop_back();
    all.push_back(now);
    mark_last(true);
  }
  std::vector<Section> sections;
  for (std::vector<uint32_t>& section : all) {
    std::sort(section.begin(), section.end());  // by buffer, as they are numbered
    Section& to = sections.emplace_back();
    for (const uint32_t use : section) to.push_back(uses.all[use]);
  }
  return sections;
}

}  // namespace

Sections::Sections(const Problem& problem) {
  const auto n = static_cast<uint32_t>(problem.buffers.size());
  const TimePieces pieces(problem);
  all = sections_of(pieces, n);
  first.assign(n, static_cast<uint32_t>(all.size())), last.assign(n, 0);
  needs.resize(n), neighbors.resize(n);
  for (uint32_t s = 0; s < all.size(); ++s) {
    for (const SectionUse& use : all[s]) {
      first[use.buffer] = std::min(first[use.buffer], s), last[use.buffer] = s;
      needs[use.buffer].push_back({s, use.high - use.low});
    }
  }
  std::vector<uint32_t> met, seen_by(n, n);
  for (uint32_t i = 0; i < n; ++i) {
    met.clear();
    for (const Need& need : needs[i]) {
      for (const SectionUse& other : all[need.section]) {
        if (other.buffer != i && std::exchange(seen_by[other.buffer], i) != i) met.push_back(other.buffer);
      }
    }
    if (needs[i].size() > 1) std::sort(met.begin(), met.end());
    neighbors[i].reserve(met.size());
    for (const uint32_t other : met) {
      const auto [its, own] = pieces.distances(i, other);
      neighbors[i].push_back({other, *its, *own});
    }
    if (!problem.buffers[i].offset && !pieces.of(i).empty()) searched.push_back(i);
  }
}

}  // namespace coppice::plan
