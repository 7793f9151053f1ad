// The bytes that buffers need at each time (see time_pieces.h).
#include "executor/plan/time_pieces.h"

#include <algorithm>

namespace coppice::plan {

TimePieces::TimePieces(const Problem& problem) : pieces_(problem.buffers.size()) {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    const auto add = [&](int64_t begin, int64_t end, int64_t low, int64_t high) {
      if (begin < end && low < high) pieces_[i].push_back({begin, end, low, high});
    };
    int64_t from = b.begin;
    for (const Gap& gap : b.gaps) {
      add(from, gap.begin, 0, b.bytes);
      if (gap.window) add(gap.begin, gap.end, gap.window->begin, gap.window->end);
      from = gap.end;
    }
    add(from, b.end, 0, b.bytes);
  }
}

std::pair<std::optional<int64_t>, std::optional<int64_t>> TimePieces::distances(size_t a, size_t b) const {
  std::optional<int64_t> above_a, above_b;
  const std::vector<Piece>& of_a = pieces_[a];
  const std::vector<Piece>& of_b = pieces_[b];
  if (of_a.size() == 1 && of_b.size() == 1) {
    const Piece &x = of_a[0], &y = of_b[0];
    if (x.begin >= y.end || y.begin >= x.end) return {};
    return {x.high - y.low, y.high - x.low};
  }
  for (size_t i = 0, j = 0; i < of_a.size() && j < of_b.size();) {
    const Piece &x = of_a[i], &y = of_b[j];
    if (x.begin < y.end && y.begin < x.end) {
      above_a = std::max(above_a.value_or(INT64_MIN), x.high - y.low);
      above_b = std::max(above_b.value_or(INT64_MIN), y.high - x.low);
    }
    if (x.end < y.end)
      ++i;
    else
      ++j;
  }
  return {above_a, above_b};
}

}  // namespace coppice::plan
