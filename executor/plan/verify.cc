// Looks at a plan (see verify.h).
#include "executor/plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace coppice::plan {
namespace {

// Bytes that a buffer has for some time.
struct Piece {
  size_t buffer;
  int64_t begin, end;  // when
  int64_t low, high;   // bytes
};

// It does not share the planners' idea of what buffers need when (time_pieces.h).
std::vector<Piece> pieces_of(const Problem& problem, const Plan& plan) {
  std::vector<Piece> pieces;
  const auto add = [&](size_t i, int64_t begin, int64_t end, int64_t low, int64_t high) {
    if (begin < end && low < high)
      pieces.push_back({i, begin, end, plan.offsets[i] + low, plan.offsets[i] + high});
  };
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    int64_t from = b.begin;
    for (const Gap& gap : b.gaps) {
      add(i, from, gap.begin, 0, b.bytes);
      if (gap.window) add(i, gap.begin, gap.end, gap.window->begin, gap.window->end);
      from = gap.end;
    }
    add(i, from, b.end, 0, b.bytes);
  }
  return pieces;
}

std::optional<std::string> find_overlap(const Problem& problem, const Plan& plan) {
  std::vector<Piece> pieces = pieces_of(problem, plan);
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  std::vector<Piece> now;  // all that are needed when the next one begins
  for (const Piece& piece : pieces) {
    std::erase_if(now, [&](const Piece& other) { return other.end <= piece.begin; });
    for (const Piece& other : now) {
      if (other.low < piece.high && piece.low < other.high)
        return fmt::format("buffers '{}' and '{}' both have bytes [{}, {}) at time {}",
                           problem.buffers[other.buffer].id, problem.buffers[piece.buffer].id,
                           std::max(other.low, piece.low), std::min(other.high, piece.high), piece.begin);
    }
    now.push_back(piece);
  }
  return {};
}

}  // namespace

std::optional<std::string> find_fault(const Problem& problem, const Plan& plan,
                                      std::optional<int64_t> capacity) {
  if (plan.offsets.size() != problem.buffers.size())
    return fmt::format("{} offsets for {} buffers", plan.offsets.size(), problem.buffers.size());
  int64_t highest = 0;
  for (size_t i = 0; i < plan.offsets.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    const int64_t offset = plan.offsets[i];
    if (offset < 0) return fmt::format("buffer '{}' lies at {}", b.id, offset);
    if (b.offset && offset != *b.offset)
      return fmt::format("buffer '{}' lies at {}, not at {}", b.id, offset, *b.offset);
    if (offset % b.alignment != 0)
      return fmt::format("buffer '{}' lies at {}, no multiple of {}", b.id, offset, b.alignment);
    highest = std::max(highest, offset + b.bytes);
  }
  if (highest != plan.bytes) return fmt::format("it needs {} bytes, and says {}", highest, plan.bytes);
  if (capacity && highest > *capacity) return fmt::format("it needs {} bytes of {}", highest, *capacity);
  return find_overlap(problem, plan);
}

std::optional<std::string> find_fault(const Problem& problem, const Pools& pools, const PooledPlan& plan) {
  const size_t n = problem.buffers.size();
  if (plan.pools.size() != n || plan.offsets.size() != n || pools.choices.size() != n)
    return fmt::format("{} pools and {} offsets for {} buffers", plan.pools.size(), plan.offsets.size(), n);
  if (plan.bytes.size() != pools.all.size())
    return fmt::format("bytes of {} pools for {}", plan.bytes.size(), pools.all.size());
  std::vector<Problem> parts(pools.all.size());
  std::vector<Plan> plans(pools.all.size());
  for (size_t i = 0; i < n; ++i) {
    const std::vector<uint32_t>& choices = pools.choices[i];
    const uint32_t pool = plan.pools[i];
    if (pool >= pools.all.size() || std::find(choices.begin(), choices.end(), pool) == choices.end())
      return fmt::format("buffer '{}' lies in pool {}, where it must not", problem.buffers[i].id, pool);
    parts[pool].buffers.push_back(problem.buffers[i]);
    plans[pool].offsets.push_back(plan.offsets[i]);
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    plans[p].bytes = plan.bytes[p];
    if (const auto fault = find_fault(parts[p], plans[p], pools.all[p].capacity))
      return fmt::format("pool '{}': {}", pools.all[p].name, *fault);
  }
  return {};
}

}  // namespace coppice::plan
