// Several pools of memory: that of a device and the host's, say, or a small fast one and a large slow one.
//
// Offsets are within a pool, and buffers in different pools are never in each other's way. They stand beside
// a Problem, so that a planner of one pool cannot be given several by mistake.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice::plan {

inline constexpr size_t kMostPools = 256;

struct Pool {
  std::string name;                 // for errors and output; "": that of buffers that name none
  std::optional<int64_t> capacity;  // bytes; empty: as many as are needed
};

struct Pools {
  std::vector<Pool> all;  // at most kMostPools
  // [buffers][1 or more]: which ones each may lie in, by their indices, from the one that it should lie in.
  std::vector<std::vector<uint32_t>> choices;
};

// Throws an Error kInvalidArgument that names the pool or the buffer, and says what is wrong with it. What is
// wrong with the problem is one of these.
void check(const Problem& problem, const Pools& pools);

struct PooledPlan {
  std::vector<uint32_t> pools;   // [buffers]: which one it lies in
  std::vector<int64_t> offsets;  // [buffers]: bytes from the beginning of its pool
  std::vector<int64_t> bytes;    // [pools]: what is needed of each, the highest end
};

// Returns the problem of these buffers alone, in this order.
Problem part_of(const Problem& problem, const std::vector<uint32_t>& buffers);
// Returns the buffers that lie in each of `num_pools` pools, in the order of their indices.
std::vector<std::vector<uint32_t>> buffers_by_pool(const std::vector<uint32_t>& pools, size_t num_pools);

}  // namespace coppice::plan
