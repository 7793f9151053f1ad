// Static memory planning: where buffers lie in one piece of memory, when it is known when each is used.
// Data in, data out; nothing here allocates what it plans.
//
// Time is any whole numbers in order, such as the places of operations in a schedule. A buffer is needed in
// [begin, end): two whose times touch may have the same bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coppice::plan {

// A part of a buffer's time in which it needs no memory, or only that of a window.
struct Gap {
  int64_t begin = 0, end = 0;  // within the buffer's time; end is behind it
  struct Window {
    int64_t begin = 0, end = 0;  // bytes from the buffer's first; end is behind it
  };
  std::optional<Window> window;
};

struct Buffer {
  std::string id;              // for errors and output
  int64_t begin = 0, end = 0;  // when it is needed; end is behind it
  int64_t bytes = 0;
  int64_t alignment = 1;          // of its offset; any number above 0
  std::vector<Gap> gaps;          // in the order of time, none upon another
  std::optional<int64_t> offset;  // where it must lie
  std::optional<int64_t> hint;    // where it might lie
};

struct Problem {
  std::vector<Buffer> buffers;
};

// All offsets, times and sums stay below this, so that nothing overflows.
inline constexpr int64_t kMostBytes = int64_t{1} << 60;

// Throws an Error kInvalidArgument that names the buffer, and says what is wrong with it.
void check(const Problem& problem);

struct Plan {
  std::vector<int64_t> offsets;  // bytes, of the buffer with the same index
  int64_t bytes = 0;             // that all of them need: the highest end
};

// Returns the plan of these offsets.
Plan plan_of(const Problem& problem, std::vector<int64_t> offsets);

// Returns the bytes that buffers need together at the worst time, at least, with the bytes that alignments
// leave between them: no plan needs less. Cost: n log n.
int64_t lower_bound(const Problem& problem);
// Returns what is to be said of a plan whose bytes meet the lower bound, or of the bound, "4 per cell", where
// they do not: "no plan needs less", "any plan needs 4 per cell".
std::string bound_text(bool is_met, std::string_view bound);
// Returns the sum of all sizes: what is needed without a plan.
int64_t naive_bytes(const Problem& problem);

// Returns the first multiple of `alignment` that is not below `offset`.
constexpr int64_t align_up(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace coppice::plan
