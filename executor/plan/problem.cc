// Memory planning's data (see problem.h).
#include "executor/plan/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "executor/plan/time_pieces.h"

namespace coppice::plan {
namespace {

[[noreturn]] void refuse(const Buffer& b, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("buffer '{}': {}", b.id, what));
}

void check_gaps(const Buffer& b) {
  int64_t last = b.begin;
  for (const Gap& gap : b.gaps) {
    if (gap.begin < last || gap.end <= gap.begin || gap.end > b.end)
      refuse(b, fmt::format("the gap {}-{} is not within its time, [{}, {}), behind the gap before",
                            gap.begin, gap.end, b.begin, b.end));
    if (gap.window &&
        (gap.window->begin < 0 || gap.window->end < gap.window->begin || gap.window->end > b.bytes))
      refuse(b, fmt::format("the window {}:{} of the gap {}-{} is not within its {} bytes", gap.window->begin,
                            gap.window->end, gap.begin, gap.end, b.bytes));
    last = gap.end;
  }
}

void check_offset(const Buffer& b) {
  if (!b.offset) return;
  if (*b.offset < 0 || *b.offset > kMostBytes - b.bytes)
    refuse(b, fmt::format("with its offset {} it does not end within 2^60 bytes", *b.offset));
  if (*b.offset % b.alignment != 0)
    refuse(b, fmt::format("its offset {} is no multiple of its alignment {}", *b.offset, b.alignment));
}

}  // namespace

void check(const Problem& problem) {
  int64_t sum = 0;
  for (const Buffer& b : problem.buffers) {
    if (b.bytes < 0) refuse(b, fmt::format("its size {} is below 0", b.bytes));
    if (b.alignment <= 0 || b.alignment > kMostBytes)
      refuse(b, fmt::format("its alignment {} is not within 1 and 2^60", b.alignment));
    if (b.end <= b.begin) refuse(b, fmt::format("its time [{}, {}) is empty", b.begin, b.end));
    check_gaps(b);
    check_offset(b);
    // A planner puts nothing above the sum of all, each aligned, on the highest fixed one.
    const int64_t most = kMostBytes / 4;
    if (b.bytes > most || b.alignment > most || (sum += b.bytes + b.alignment) > most)
      refuse(b, "the sizes and alignments up to it are together more than 2^58");
  }
}

Plan plan_of(const Problem& problem, std::vector<int64_t> offsets) {
  Plan plan{std::move(offsets), 0};
  for (size_t i = 0; i < plan.offsets.size(); ++i)
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + problem.buffers[i].bytes);
  return plan;
}

int64_t naive_bytes(const Problem& problem) {
  int64_t sum = 0;
  for (const Buffer& b : problem.buffers) sum += b.bytes;
  return sum;
}

int64_t lower_bound(const Problem& problem) {
  const TimePieces pieces(problem);
  // Where all that is needed begins at multiples of some number, whatever lies below something else takes
  // whole ones.
  int64_t unit = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    unit = std::gcd(std::gcd(unit, problem.buffers[i].alignment), problem.buffers[i].offset.value_or(0));
    for (const TimePieces::Piece& p : pieces.of(i)) unit = std::gcd(unit, p.low);
  }
  unit = std::max<int64_t>(unit, 1);
  struct Change {
    int64_t when, bytes, slack;  // ends, whose bytes are below 0, come first
    bool operator<(const Change& other) const {
      return std::pair(when, bytes) < std::pair(other.when, other.bytes);
    }
  };
  std::vector<Change> changes;
  int64_t most = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    for (const TimePieces::Piece& p : pieces.of(i)) {
      const int64_t bytes = align_up(p.high - p.low, unit), slack = bytes - (p.high - p.low);
      changes.push_back({p.begin, bytes, slack}), changes.push_back({p.end, -bytes, slack});
    }
    most = std::max(most, problem.buffers[i].offset.value_or(0) + problem.buffers[i].bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0;
  std::multiset<int64_t> slacks;  // what lies on top needs its own bytes alone
  for (const auto& [when, bytes, slack] : changes) {
    now += bytes;
    if (bytes > 0)
      slacks.insert(slack);
    else
      slacks.erase(slacks.find(slack));
    if (!slacks.empty()) most = std::max(most, now - *slacks.rbegin());
  }
  return most;
}

std::string bound_text(bool is_met, std::string_view bound) {
  return is_met ? "no plan needs less" : fmt::format("any plan needs {}", bound);
}

}  // namespace coppice::plan
