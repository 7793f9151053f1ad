// A smaller planning problem, each plan of which is one of the larger problem: buffers that could well lie in
// the same bytes one after the other, or one upon the other, are made one buffer.
//
//   - One that ends when another one of its size begins gets the same bytes, as steps of a program do that
//     change something in place: first where nothing else ends or begins then, next where nothing else of
//     that size does.
//   - Those that are needed at the same times lie one upon the other.
//
// Both are done until nothing is left to be done: pieces that were cut from one, in time or in bytes, become
// one again. A plan of the larger problem need not be one of the smaller: that the smaller has none says
// nothing.
#pragma once
#include <cstdint>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

struct Fusion {
  struct Place {
    uint32_t buffer;  // of the smaller problem
    int64_t above;    // bytes above that buffer's offset
  };
  Problem problem;
  std::vector<Place> places;  // [buffers of the larger problem]

  // Returns the offsets of the larger problem.
  std::vector<int64_t> offsets_of(const std::vector<int64_t>& offsets) const;
};

// Says which of the two is done.
enum class Fuse { kInTime, kInTimeAndBytes };

// Buffers with offsets or gaps stay as they are, and those of different alignments apart. Cost: n log n,
// times how often something was fused with what was fused.
Fusion fuse(const Problem& problem, Fuse what);

}  // namespace coppice::plan
