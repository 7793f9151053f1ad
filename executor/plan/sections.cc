// The times that matter (see sections.h).
#include "executor/plan/sections.h"

#include <algorithm>

#include "executor/plan/time_pieces.h"

namespace coppice::plan {
namespace {

struct Change {
  int64_t time;
  bool begins;
  SectionUse use;
};

bool includes(const Section& large, const Section& small) {
  return std::all_of(small.begin(), small.end(), [&](const SectionUse& use) {
    return std::find(large.begin(), large.end(), use) != large.end();
  });
}

void add(std::vector<Section>& all, const Section& now) {
  if (now.empty() || (!all.empty() && includes(all.back(), now))) return;
  while (!all.empty() && includes(now, all.back())) all.pop_back();
  all.push_back(now);
}

std::vector<Section> sections_of(const TimePieces& pieces, size_t n) {
  std::vector<Change> changes;
  for (uint32_t i = 0; i < n; ++i) {
    for (const TimePieces::Piece& p : pieces.of(i)) {
      changes.push_back({p.begin, true, {i, p.low, p.high}});
      changes.push_back({p.end, false, {i, p.low, p.high}});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time < b.time; });
  std::vector<Section> all;
  Section now;
  for (size_t c = 0; c < changes.size();) {
    const int64_t time = changes[c].time;
    size_t end = c;
    for (; end < changes.size() && changes[end].time == time; ++end) {
      if (!changes[end].begins) now.erase(std::find(now.begin(), now.end(), changes[end].use));
    }
    for (; c < end; ++c) {
      if (changes[c].begins) now.push_back(changes[c].use);
    }
    add(all, now);
  }
  for (Section& section : all) {
    std::sort(section.begin(), section.end(),
              [](const SectionUse& a, const SectionUse& b) { return a.buffer < b.buffer; });
  }
  return all;
}

}  // namespace

Sections::Sections(const Problem& problem) {
  const auto n = static_cast<uint32_t>(problem.buffers.size());
  const TimePieces pieces(problem);
  all = sections_of(pieces, n);
  first.assign(n, static_cast<uint32_t>(all.size())), last.assign(n, 0);
  needs.resize(n), neighbors.resize(n);
  std::vector<std::vector<uint32_t>> met(n);
  for (uint32_t s = 0; s < all.size(); ++s) {
    for (const SectionUse& use : all[s]) {
      first[use.buffer] = std::min(first[use.buffer], s), last[use.buffer] = s;
      needs[use.buffer].push_back({s, use.high - use.low});
      for (const SectionUse& other : all[s]) {
        if (other.buffer != use.buffer) met[use.buffer].push_back(other.buffer);
      }
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    std::sort(met[i].begin(), met[i].end());
    met[i].erase(std::unique(met[i].begin(), met[i].end()), met[i].end());
    for (const uint32_t other : met[i]) {
      const auto [its, own] = pieces.distances(i, other);
      neighbors[i].push_back({other, *its, *own});
    }
    if (!problem.buffers[i].offset && !pieces.of(i).empty()) searched.push_back(i);
  }
}

}  // namespace coppice::plan
