// Several pools' data (see pools.h).
#include "executor/plan/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "core/error.h"

namespace coppice::plan {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

void check_choices(const Buffer& buffer, const std::vector<uint32_t>& choices, size_t num_pools) {
  if (choices.empty()) refuse(fmt::format("buffer '{}': there is no pool that it may lie in", buffer.id));
  for (const uint32_t pool : choices) {
    if (pool >= num_pools)
      refuse(fmt::format("buffer '{}': its pool {} is none of {}", buffer.id, pool, num_pools));
    if (std::count(choices.begin(), choices.end(), pool) > 1)
      refuse(fmt::format("buffer '{}': one of its pools is there twice", buffer.id));
  }
  if (buffer.offset && choices.size() > 1)
    refuse(fmt::format("buffer '{}': it has an offset, and so needs one pool, not {}", buffer.id,
                       choices.size()));
}

}  // namespace

void check(const Problem& problem, const Pools& pools) {
  check(problem);
  if (pools.all.size() > kMostPools)
    refuse(fmt::format("there are {} pools, more than {}", pools.all.size(), kMostPools));
  std::unordered_set<std::string_view> names;
  for (const Pool& pool : pools.all) {
    if (!names.insert(pool.name).second) refuse(fmt::format("there are two pools '{}'", pool.name));
    if (pool.capacity.value_or(0) < 0)
      refuse(fmt::format("pool '{}': its capacity {} is below 0", pool.name, *pool.capacity));
  }
  if (pools.choices.size() != problem.buffers.size())
    refuse(fmt::format("pools of {} buffers for {}", pools.choices.size(), problem.buffers.size()));
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    check_choices(problem.buffers[i], pools.choices[i], pools.all.size());
}

Problem part_of(const Problem& problem, const std::vector<uint32_t>& buffers) {
  Problem part;
  part.buffers.reserve(buffers.size());
  for (const uint32_t i : buffers) part.buffers.push_back(problem.buffers[i]);
  return part;
}

std::vector<std::vector<uint32_t>> buffers_by_pool(const std::vector<uint32_t>& pools, size_t num_pools) {
  std::vector<std::vector<uint32_t>> buffers(num_pools);
  for (uint32_t i = 0; i < pools.size(); ++i) buffers[pools[i]].push_back(i);
  return buffers;
}

}  // namespace coppice::plan
