// 10^5 random planning problems, of up to nine buffers each (plan_random.h).
#include "tests/executor/plan_random.h"

namespace coppice::plan {
namespace {

TEST(PlanSearchLong, EqualsAllPlansTriedOfRandomProblems) {
  for (uint64_t seed = 0; seed < 17'000 && !testing::Test::HasFailure(); ++seed)
    run_plan_seed(1'000'000 + seed, 9);
}

}  // namespace
}  // namespace coppice::plan
