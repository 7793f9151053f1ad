// Tests of memory planning share this: small problems, random ones, and the smallest plan by trying all.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "executor/plan/csv.h"
#include "executor/plan/verify.h"

namespace coppice::plan {

// Returns the text of the Error that it throws; "" if it throws none.
inline std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// One buffer for each {begin, end, bytes}.
inline Problem problem_of(const std::vector<std::array<int64_t, 3>>& buffers) {
  Problem problem;
  for (const auto& [begin, end, bytes] : buffers) {
    Buffer b;
    b.id = "b" + std::to_string(problem.buffers.size());
    b.begin = begin, b.end = end, b.bytes = bytes;
    problem.buffers.push_back(b);
  }
  return problem;
}

inline Problem problem_in(const std::string& name) {
  std::ifstream in(COPPICE_PLAN_DATA + name);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_problem(text, name).problem;
}

inline void expect_right(const Problem& problem, const Plan& plan, std::optional<int64_t> capacity = {}) {
  EXPECT_EQ(find_fault(problem, plan, capacity).value_or(""), "");
}

struct RandomForm {
  int most_buffers = 7;
  int times = 8, sizes = 9;
  bool has_gaps = false, has_windows = false, has_alignments = false, has_offsets = false;
};

inline Problem random_problem(std::mt19937_64& random, const RandomForm& form) {
  const auto pick = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  Problem problem;
  const int64_t n = pick(1, form.most_buffers);
  for (int64_t i = 0; i < n; ++i) {
    Buffer b;
    b.id = "b" + std::to_string(i);
    b.begin = pick(0, form.times - 1), b.end = pick(b.begin + 1, form.times);
    b.bytes = pick(0, form.sizes);
    if (form.has_alignments && pick(0, 2) == 0) b.alignment = pick(1, 4);
    if (form.has_gaps && b.end - b.begin > 2 && pick(0, 1) == 0) {
      const int64_t begin = pick(b.begin, b.end - 1);
      b.gaps.push_back({begin, pick(begin + 1, b.end), {}});
      if (form.has_windows && pick(0, 1) == 0) {
        const int64_t low = pick(0, b.bytes);
        b.gaps.back().window = Gap::Window{low, pick(low, b.bytes)};
      }
    }
    // Few of them, and far apart, so that most do not overlap.
    if (form.has_offsets && pick(0, 4) == 0) b.offset = pick(0, 6) * 7 * b.alignment;
    problem.buffers.push_back(b);
  }
  // One for all is what functions have, and bounds know of.
  if (form.has_alignments && pick(0, 2) == 0) {
    for (Buffer& b : problem.buffers) {
      b.alignment = 3;
      if (b.offset) b.offset = *b.offset * 3;
    }
  }
  return problem;
}

// Returns the bytes of the smallest plan without windows. One buffer after the other is put as low as it
// can be above those before it that it meets, in all orders: one of these is that of the smallest plan's
// offsets.
class AllPlans {
 public:
  explicit AllPlans(const Problem& problem) : problem_(problem), offsets_(problem.buffers.size(), -1) {
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (!problem.buffers[i].offset) continue;
      offsets_[i] = *problem.buffers[i].offset;
      fixed_top_ = std::max(fixed_top_, offsets_[i] + problem.buffers[i].bytes);
    }
  }
  int64_t smallest() {
    try_all(fixed_top_);
    return best_;
  }

 private:
  bool needs(const Buffer& b, int64_t time) const {
    if (time < b.begin || time >= b.end) return false;
    return std::none_of(b.gaps.begin(), b.gaps.end(),
                        [&](const Gap& gap) { return gap.begin <= time && time < gap.end; });
  }
  bool meet(size_t i, size_t j) const {
    const Buffer &a = problem_.buffers[i], &b = problem_.buffers[j];
    if (a.bytes == 0 || b.bytes == 0) return false;
    for (int64_t t = std::max(a.begin, b.begin); t < std::min(a.end, b.end); ++t) {
      if (needs(a, t) && needs(b, t)) return true;
    }
    return false;
  }
  bool is_free(size_t i, int64_t offset) const {
    for (size_t j = 0; j < offsets_.size(); ++j) {
      const Buffer& fixed = problem_.buffers[j];
      if (fixed.offset && meet(i, j) && offset < *fixed.offset + fixed.bytes &&
          *fixed.offset < offset + problem_.buffers[i].bytes)
        return false;
    }
    return true;
  }
  void try_all(int64_t top) {
    if (top >= best_) return;
    bool is_whole = true;
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] >= 0) continue;
      is_whole = false;
      const Buffer& b = problem_.buffers[i];
      int64_t low = 0;
      for (size_t j = 0; j < offsets_.size(); ++j) {
        if (offsets_[j] >= 0 && !problem_.buffers[j].offset && meet(i, j))
          low = std::max(low, offsets_[j] + problem_.buffers[j].bytes);
      }
      low = align_up(low, b.alignment);
      while (!is_free(i, low)) low += b.alignment;
      offsets_[i] = low;
      try_all(std::max(top, low + b.bytes));
      offsets_[i] = -1;
    }
    if (is_whole) best_ = top;
  }

  const Problem& problem_;
  std::vector<int64_t> offsets_;  // -1: not yet
  int64_t fixed_top_ = 0, best_ = INT64_MAX;
};

}  // namespace coppice::plan
