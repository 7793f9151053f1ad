// How near to each other two buffers may lie, by what each needs at the times that they have in common.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

class TimePieces {
 public:
  // It outlives this.
  explicit TimePieces(const Problem& problem);

  // A time, and the bytes that a buffer needs then, from its first one.
  struct Piece {
    int64_t begin, end, low, high;
  };
  const std::vector<Piece>& of(size_t buffer) const { return pieces_[buffer]; }

  // Returns how far `b` must lie above `a`, or `a` above `b`: the differences of their offsets, at least.
  // Empty where they need nothing at the same time. Without windows these are their sizes.
  std::pair<std::optional<int64_t>, std::optional<int64_t>> distances(size_t a, size_t b) const;

 private:
  std::vector<std::vector<Piece>> pieces_;
};

}  // namespace coppice::plan
