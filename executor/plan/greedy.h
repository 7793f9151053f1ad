// Plans made buffer by buffer, each put where it fits: fast, and often as small as can be.
#pragma once
#include "executor/plan/problem.h"

namespace coppice::plan {

// Says in which order buffers are given their places; ties go by their index. Buffers with an offset come
// first.
enum class Order {
  kSize,     // the largest first (Pisarchyk and Lee, arXiv:2001.03288, algorithm 3)
  kBreadth,  // those of the time that needs most bytes first, the largest of them first (algorithm 2's order)
  kArea,     // the largest product of size and time first
  kTime,     // the one that is needed longest first
  kBegin,    // in the order in which they are needed
  kHint,     // by their hints, from the lowest; then those without one, by size
};
// Says which of the gaps that it fits into a buffer gets.
enum class Fit { kSmallestGap, kLowest };

// Returns a plan. Cost: n log n, and the pairs of buffers that are needed at the same time; where these are
// more than some 10^7, what is left is put above all others, at n log n. Errors: kInvalidArgument
// (check()), and where two buffers with offsets are in each other's way.
Plan greedy_plan(const Problem& problem, Order order, Fit fit);

// Returns the smallest of several greedy plans; of equal ones the first. It stops at one that is as small as
// lower_bound(). Cost: about 12 greedy plans up to 2,000 buffers, 4 beyond.
Plan best_greedy_plan(const Problem& problem);

}  // namespace coppice::plan
