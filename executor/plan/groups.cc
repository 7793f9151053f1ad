// Storage groups by size (Pisarchyk and Lee, arXiv:2001.03288, "shared objects").
#include "executor/plan/groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace coppice::plan {
namespace {

// The times of a group's buffers, by their begin; they do not overlap.
using Times = std::map<int64_t, int64_t>;

// Returns the time between the buffer and the group's nearest one, or nothing where they overlap.
std::optional<int64_t> distance(const Times& times, const Buffer& buffer) {
  int64_t nearest = std::numeric_limits<int64_t>::max();
  const auto behind = times.lower_bound(buffer.begin);
  if (behind != times.end()) {
    if (behind->first < buffer.end) return {};
    nearest = behind->first - buffer.end;
  }
  if (behind != times.begin()) {
    const auto before = std::prev(behind);
    if (before->second > buffer.begin) return {};
    nearest = std::min(nearest, buffer.begin - before->second);
  }
  return nearest;
}

}  // namespace

Groups storage_groups(const Problem& problem) {
  check(problem);
  const std::vector<Buffer>& buffers = problem.buffers;
  std::vector<uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Groups groups;
  groups.group_of.resize(buffers.size());
  std::vector<Times> times;
  std::vector<int64_t> alignments;
  for (const uint32_t i : order) {
    const Buffer& buffer = buffers[i];
    size_t best = times.size();
    int64_t best_waste = 0, best_distance = 0;
    for (size_t g = 0; g < times.size(); ++g) {
      const std::optional<int64_t> d = distance(times[g], buffer);
      if (!d) continue;
      const int64_t waste = groups.bytes[g] - buffer.bytes;
      if (best < times.size() && (waste > best_waste || (waste == best_waste && *d >= best_distance)))
        continue;
      best = g, best_waste = waste, best_distance = *d;
    }
    if (best == times.size()) {
      times.emplace_back();
      groups.bytes.push_back(buffer.bytes);
      alignments.push_back(1);
    }
    times[best].emplace(buffer.begin, buffer.end);
    alignments[best] = std::lcm(alignments[best], buffer.alignment);
    groups.group_of[i] = static_cast<uint32_t>(best);
  }
  std::vector<int64_t> begins;
  int64_t end = 0;
  for (size_t g = 0; g < times.size(); ++g) {
    begins.push_back(align_up(end, alignments[g]));
    end = begins.back() + groups.bytes[g];
  }
  std::vector<int64_t> offsets;
  for (const uint32_t g : groups.group_of) offsets.push_back(begins[g]);
  groups.plan = plan_of(problem, std::move(offsets));
  return groups;
}

}  // namespace coppice::plan
