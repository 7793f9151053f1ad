// Random planning problems: the exact plan against all plans there are, greedy ones against it.
#pragma once
#include <fmt/format.h>

#include "core/error.h"
#include "executor/plan/exact.h"
#include "executor/plan/greedy.h"
#include "tests/executor/plan_util.h"

namespace coppice::plan {

inline bool has_clash(const Problem& problem) {
  try {
    greedy_plan(problem, Order::kSize, Fit::kSmallestGap);
    return false;
  } catch (const Error&) {
    return true;
  }
}

// Looks at one problem of each form. Says how many had offsets that were in each other's way.
inline void run_plan_seed(uint64_t seed, int most_buffers) {
  std::mt19937_64 random(seed);
  const RandomForm forms[] = {
      {.most_buffers = most_buffers},
      {.most_buffers = most_buffers, .has_gaps = true},
      {.most_buffers = most_buffers, .has_alignments = true},
      {.most_buffers = most_buffers, .has_offsets = true},
      {.most_buffers = most_buffers, .has_gaps = true, .has_alignments = true, .has_offsets = true},
      {.most_buffers = most_buffers, .has_gaps = true, .has_windows = true, .has_alignments = true}};
  for (const RandomForm& form : forms) {
    const Problem problem = random_problem(random, form);
    SCOPED_TRACE(fmt::format("seed {}, form {}", seed, &form - forms));
    if (has_clash(problem)) continue;
    const Plan greedy = best_greedy_plan(problem);
    expect_right(problem, greedy);
    const Found found = search_plan(problem);
    expect_right(problem, found.plan);
    EXPECT_LE(found.plan.bytes, greedy.bytes);
    EXPECT_GE(found.plan.bytes, lower_bound(problem));
    EXPECT_GE(found.plan.bytes, found.lower_bound);
    if (form.has_windows) continue;  // not all plans of these are met
    const int64_t smallest = AllPlans(problem).smallest();
    EXPECT_EQ(found.plan.bytes, smallest);
    EXPECT_TRUE(found.is_smallest());
    // Within less there is nothing, and those that are named show it.
    if (smallest == 0) continue;
    const Found none = search_plan(problem, {.capacity = smallest - 1});
    EXPECT_GE(none.lower_bound, smallest);
    Problem named;
    for (const uint32_t i : none.infeasible) named.buffers.push_back(problem.buffers[i]);
    EXPECT_EQ(AllPlans(named).smallest() >= smallest, true);
    for (size_t i = 0; i < named.buffers.size(); ++i) {
      if (named.buffers[i].offset) continue;
      Problem fewer = named;
      fewer.buffers.erase(fewer.buffers.begin() + static_cast<ptrdiff_t>(i));
      EXPECT_LT(AllPlans(fewer).smallest(), smallest) << "without " << named.buffers[i].id;
    }
  }
}

}  // namespace coppice::plan
