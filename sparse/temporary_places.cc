// COPPICE_TEMPORARIES, and the plan that it asks for (see temporary_places.h).
#include "sparse/temporary_places.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "executor/plan/exact.h"

namespace coppice {

bool temporaries_lie_apart() {
  const char* value = std::getenv("COPPICE_TEMPORARIES");
  const std::string_view word = value == nullptr ? "" : value;
  if (word.empty() || word == "shared") return false;
  if (word == "apart") return true;
  throw Error(ErrorCode::kUsage, fmt::format("COPPICE_TEMPORARIES must be shared or apart, not '{}'", word));
}

plan::Plan plan_temporaries(const plan::Problem& problem, uint64_t most_nodes) {
  if (!temporaries_lie_apart()) return plan::search_plan(problem, {.most_nodes = most_nodes}).plan;
  plan::Problem all_at_once = problem;
  for (plan::Buffer& b : all_at_once.buffers) b.begin = 0, b.end = 1, b.gaps.clear();
  return plan::search_plan(all_at_once, {.most_nodes = most_nodes}).plan;
}

}  // namespace coppice
