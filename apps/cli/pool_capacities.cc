// The values of `coppice plan --capacity` (see pool_capacities.h).
#include "apps/cli/pool_capacities.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/error.h"
#include "core/nearest_name.h"

namespace coppice::cli {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kUsage, "--capacity: " + what); }

int64_t bytes_in(std::string_view number, const std::string& value) {
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bytes);
  if (error != std::errc() || end != number.data() + number.size() || bytes < 0 || bytes > plan::kMostBytes)
    refuse(fmt::format("'{}' is not N or POOL=N, where N is a number of bytes up to 2^60", value));
  return bytes;
}

// Says why the table has no such pool.
std::string why_unknown(const plan::ProblemText& text, const std::string& pool, const std::string& file) {
  if (!text.has_pools)
    return fmt::format("there is no pool '{}' in {}, which has no column 'pool'; expected N", pool, file);
  std::vector<std::string> names;
  for (const plan::Pool& known : text.pools.all) {
    if (!known.name.empty()) names.push_back(known.name);
  }
  if (pool.empty())
    return fmt::format("N alone is for buffers without a pool, and {} has none; expected POOL=N{}", file,
                       names.empty() ? "" : fmt::format(", such as {}=N", names.front()));
  const auto near = nearest_name(pool, names);
  return fmt::format("there is no pool '{}' in {}{}", pool, file,
                     near ? fmt::format("; is it '{}'?", *near) : "");
}

}  // namespace

std::vector<PoolCapacity> parse_capacities(const std::vector<std::string>& values) {
  std::vector<PoolCapacity> capacities;
  for (const std::string& value : values) {
    const size_t equals = value.rfind('=');
    if (equals == 0) refuse(fmt::format("'{}' has no pool's name in front of '='", value));
    const bool is_named = equals != value.npos;
    const std::string number = is_named ? value.substr(equals + 1) : value;
    capacities.push_back({is_named ? value.substr(0, equals) : "", bytes_in(number, value)});
  }
  return capacities;
}

void set_capacities(plan::ProblemText& text, const std::vector<PoolCapacity>& capacities,
                    const std::string& file) {
  for (const PoolCapacity& capacity : capacities) {
    const auto pool = std::find_if(text.pools.all.begin(), text.pools.all.end(),
                                   [&](const plan::Pool& known) { return known.name == capacity.pool; });
    if (pool == text.pools.all.end()) refuse(why_unknown(text, capacity.pool, file));
    if (pool->capacity)
      refuse(capacity.pool.empty() ? "there are two for the buffers without a pool"
                                   : fmt::format("there are two for the pool '{}'", capacity.pool));
    pool->capacity = capacity.bytes;
  }
}

}  // namespace coppice::cli
