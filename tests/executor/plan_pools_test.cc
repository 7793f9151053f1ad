// Plans of several pools: what lies where, within which capacity, and who looks at it.
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "executor/plan/greedy.h"
#include "executor/plan/search_pools.h"
#include "tests/executor/plan_random.h"
#include "tests/executor/plan_util.h"
#include "tests/executor/plan_vectors.h"

namespace coppice::plan {
namespace {

using Choices = std::vector<std::vector<uint32_t>>;
using Indices = std::vector<uint32_t>;

// A small fast pool with a capacity, and a large slow one; each buffer may lie in both.
Pools fast_and_slow(int64_t fast_bytes, size_t num_buffers) {
  return {{{"fast", fast_bytes}, {"slow", {}}}, Choices(num_buffers, {0, 1})};
}

void expect_right(const Problem& problem, const Pools& pools, const FoundInPools& found) {
  EXPECT_EQ(find_fault(problem, pools, found.plan).value_or(""), "");
}

void expect_same(const FoundInPools& a, const FoundInPools& b) {
  EXPECT_EQ(a.plan.pools, b.plan.pools);
  EXPECT_EQ(a.plan.offsets, b.plan.offsets);
  EXPECT_EQ(a.plan.bytes, b.plan.bytes);
  EXPECT_EQ(a.nodes, b.nodes);
}

// ExecuTorch's multiple_pools: what lies in one is in nobody's way in another.
TEST(PlanPools, ArePlannedEachForItself) {
  const Problem problem = problem_of({{0, 3, 4}, {0, 3, 8}, {2, 5, 4}, {3, 5, 8}});
  const Pools pools{{{"host", {}}, {"device", {}}}, {{0}, {1}, {0}, {1}}};
  const FoundInPools found = search_pools(problem, pools);
  expect_right(problem, pools, found);
  EXPECT_EQ(found.plan.pools, (Indices{0, 1, 0, 1}));
  EXPECT_EQ(found.plan.bytes, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(found.pools[1].buffers, (Indices{1, 3}));
  EXPECT_TRUE(found.pools[0].found.is_smallest() && found.pools[1].found.is_smallest());
}

// The vectors, two of them at once: in its pool each has the plan that it has alone.
TEST(PlanPools, HaveThePlansThatTheirBuffersHaveAlone) {
  const std::vector<PlanVector> vectors = plan_vectors();
  for (size_t v = 1; v < vectors.size(); ++v) {
    SCOPED_TRACE(vectors[v].name);
    const Problem one = vectors[v - 1].problem(), other = vectors[v].problem();
    Problem both;
    Pools pools{{{"one", {}}, {"other", {}}}, {}};
    for (const uint32_t pool : {0, 1}) {
      for (const Buffer& b : (pool == 0 ? one : other).buffers)
        both.buffers.push_back(b), pools.choices.push_back({pool});
    }
    const FoundInPools found = search_pools(both, pools);
    expect_right(both, pools, found);
    EXPECT_EQ(found.pools[0].found.plan.offsets, search_plan(one).plan.offsets);
    EXPECT_EQ(found.pools[1].found.plan.offsets, search_plan(other).plan.offsets);
  }
}

// TVM's test_no_pool_error.
TEST(PlanPools, NameBuffersThatDoNotFitTheirPool) {
  const Problem problem = problem_of({{0, 9, 99}, {0, 3, 10}, {1, 3, 10}, {2, 3, 10}});
  const Pools pools{{{"large", {}}, {"small", 10}}, {{0}, {1}, {1}, {1}}};
  const FoundInPools found = search_pools(problem, pools);
  EXPECT_EQ(find_fault(problem, pools, found.plan), "pool 'small': it needs 30 bytes of 10");
  EXPECT_EQ(found.pools[1].found.lower_bound, 30);
  ASSERT_EQ(found.pools[1].found.infeasible.size(), 2u) << "any two of the three";
  EXPECT_EQ(found.pools[1].found.infeasible.back(), 2u) << "by the pool's own buffers";
  EXPECT_TRUE(found.pools[0].found.infeasible.empty());
}

// TensorFlow Lite Micro #2675 asks for a small fast arena and a large slow one.
TEST(PlanPools, FillTheFastOneWithWhatUsesItMost) {
  const Problem problem = problem_of({{0, 9, 4}, {0, 2, 8}, {1, 9, 10}, {3, 6, 6}, {6, 9, 6}});
  const Pools pools = fast_and_slow(16, 5);
  const FoundInPools found = search_pools(problem, pools);
  expect_right(problem, pools, found);
  // By size and time: b2 80, b0 36, b3 and b4 18, b1 16. With the first two there is no room for six bytes.
  EXPECT_EQ(found.plan.pools, (Indices{0, 1, 0, 1, 1}));
  EXPECT_EQ(found.plan.bytes, (std::vector<int64_t>{14, 8}));
  // A buffer that may lie in the fast one alone comes before all that have a choice.
  Pools bound = pools;
  bound.choices[1] = {0};
  const FoundInPools other = search_pools(problem, bound);
  expect_right(problem, bound, other);
  EXPECT_EQ(other.plan.pools, (Indices{0, 0, 1, 0, 0}));
}

TEST(PlanPools, LeaveTheirOrderOfPreferenceToEachBuffer) {
  const Problem problem = problem_of({{0, 2, 8}, {0, 2, 8}, {0, 2, 6}, {0, 2, 2}});
  const Pools pools{{{"a", 10}, {"b", 8}, {"c", {}}}, {{0, 1}, {1, 0, 2}, {1, 0, 2}, {2, 0}}};
  const FoundInPools found = search_pools(problem, pools);
  expect_right(problem, pools, found);
  EXPECT_EQ(found.plan.pools, (Indices{0, 1, 2, 2}));
}

// Where nothing may move, the third does not fit: the first two lie at 0 and 4, and leave two pieces of it.
TEST(PlanPools, MoveWhatTheyHoldForOneMore) {
  const Problem problem = problem_of({{0, 10, 4}, {8, 20, 4}, {18, 30, 4}, {28, 31, 4}, {0, 8, 4}});
  const Pools pools = fast_and_slow(8, 5);
  const FoundInPools found = search_pools(problem, pools);
  expect_right(problem, pools, found);
  EXPECT_EQ(found.plan.bytes, (std::vector<int64_t>{8, 0}));
}

// Each part of what has a plan has one, so that all find room where the smallest plan of all does.
TEST(PlanPools, TakeAllThatFits) {
  size_t num_hard = 0;  // no greedy planner fits these
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Problem problem =
        random_problem(random, {.most_buffers = 14, .times = 12, .has_gaps = seed % 2 == 0});
    const int64_t smallest = search_plan(problem).plan.bytes;
    num_hard += best_greedy_plan(problem).bytes > smallest ? 1 : 0;
    const Pools pools = fast_and_slow(smallest, problem.buffers.size());
    const FoundInPools found = search_pools(problem, pools);
    expect_right(problem, pools, found);
    EXPECT_EQ(found.plan.pools, Indices(problem.buffers.size(), 0));
  }
  EXPECT_GT(num_hard, 0u);
}

// MiniMalloc's A, which no greedy planner fits into its capacity, and a pool of half of that.
TEST(PlanPools, SpillWhatDoesNotFit) {
  const Problem problem = problem_in("A.1048576.csv");
  for (const int64_t capacity : {1'048'576, 524'288}) {
    SCOPED_TRACE(capacity);
    const Pools pools = fast_and_slow(capacity, problem.buffers.size());
    const FoundInPools found = search_pools(problem, pools, {.most_nodes = 20'000});
    expect_right(problem, pools, found);
    EXPECT_GT(found.plan.bytes[0], capacity / 2);
    expect_same(found, search_pools(problem, pools, {.most_nodes = 20'000, .threads = 3}));
  }
}

struct PooledForm {
  Problem problem;
  Pools pools;
};
PooledForm random_pools(uint64_t seed) {
  std::mt19937_64 random(seed);
  PooledForm form{random_problem(random, {.most_buffers = 20,
                                          .has_gaps = seed % 2 == 0,
                                          .has_windows = seed % 4 == 0,
                                          .has_alignments = seed % 3 == 0,
                                          .has_offsets = seed % 5 == 0}),
                  {{{"a", {}}, {"b", {}}, {"c", {}}, {"nothing", 0}}, {}}};
  for (Pool& pool : form.pools.all) {
    if (random() % 3 != 0) pool.capacity = static_cast<int64_t>(random() % 40);
  }
  for (const Buffer& b : form.problem.buffers) {
    std::vector<uint32_t> choices{0, 1, 2};
    std::shuffle(choices.begin(), choices.end(), random);
    choices.resize(b.offset ? 1 : 1 + random() % 3);
    form.pools.choices.push_back(choices);
  }
  return form;
}

bool has_clash(const PooledForm& form) {
  const std::string error = error_of([&] { search_pools(form.problem, form.pools); });
  if (!error.empty()) {
    EXPECT_NE(error.find("it would overlap another that has an offset"), error.npos) << error;
  }
  return !error.empty();
}

TEST(PlanPools, AreRightForRandomProblems) {
  size_t num_planned = 0, num_full = 0;
  for (uint64_t seed = 0; seed < 1000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const PooledForm form = random_pools(seed);
    if (has_clash(form)) continue;
    ++num_planned;
    const FoundInPools found = search_pools(form.problem, form.pools);
    Pools without_capacities = form.pools;
    for (Pool& pool : without_capacities.all) pool.capacity = {};
    expect_right(form.problem, without_capacities, found);
    for (size_t p = 0; p < form.pools.all.size(); ++p) {
      const FoundInPool& in = found.pools[p];
      const std::optional<int64_t> capacity = form.pools.all[p].capacity;
      const Found alone = search_plan(part_of(form.problem, in.buffers), {.capacity = capacity});
      EXPECT_LE(in.found.plan.bytes, std::max(alone.plan.bytes, capacity.value_or(0)));
      EXPECT_EQ(in.found.infeasible, alone.infeasible);
      EXPECT_GE(in.found.plan.bytes, in.found.lower_bound);
      if (!capacity || in.found.plan.bytes <= *capacity) continue;
      ++num_full;
      for (const uint32_t i : in.buffers) {  // none of them has room for sure elsewhere
        for (const uint32_t other : form.pools.choices[i]) EXPECT_TRUE(form.pools.all[other].capacity) << i;
      }
    }
    expect_same(found, search_pools(form.problem, form.pools, {.threads = 2}));
  }
  EXPECT_GT(num_planned, 700u);
  EXPECT_GT(num_full, 100u);
}

// A buffer that may lie in one without a capacity never makes another one too full.
TEST(PlanPools, NeverExceedACapacityForWhatMayLieElsewhere) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    PooledForm form = random_pools(seed);
    form.pools.all[2].capacity = {};
    for (size_t i = 0; i < form.problem.buffers.size(); ++i) {
      form.problem.buffers[i].offset = {};
      if (i % 3 == 0)
        form.pools.choices[i] = {0, 1, 2};
      else
        form.pools.choices[i] = {static_cast<uint32_t>(i % 2), 2};
    }
    const FoundInPools found = search_pools(form.problem, form.pools);
    expect_right(form.problem, form.pools, found);
  }
}

// A buffer that fits nowhere lies in the last of its pools, where the search has the last word.
TEST(PlanPools, SayWhatFitsNowhere) {
  const Problem problem = problem_of({{0, 2, 8}, {0, 2, 8}, {0, 2, 8}, {5, 6, 1}});
  const Pools pools{{{"a", 8}, {"b", 8}}, {{0, 1}, {0, 1}, {0, 1}, {1}}};
  const FoundInPools found = search_pools(problem, pools);
  EXPECT_EQ(found.plan.pools, (Indices{0, 1, 1, 1}));
  EXPECT_EQ(found.pools[1].found.infeasible, (Indices{0, 1}));
  EXPECT_EQ(found.pools[1].buffers, (Indices{1, 2, 3}));
}

TEST(PlanPools, TakeOffsetsWithinThem) {
  Problem problem = problem_of({{0, 2, 8}, {0, 2, 8}, {0, 2, 4}});
  problem.buffers[0].offset = 4, problem.buffers[1].offset = 8;
  Pools pools{{{"a", 12}, {"b", {}}}, {{0}, {1}, {0, 1}}};
  const FoundInPools found = search_pools(problem, pools);
  expect_right(problem, pools, found);
  EXPECT_EQ(found.plan.pools, (Indices{0, 1, 0}));
  EXPECT_EQ(found.plan.offsets, (std::vector<int64_t>{4, 8, 0}));
  pools.choices[1] = {0};
  EXPECT_EQ(error_of([&] { search_pools(problem, pools); }),
            "buffer 'b1': at its offset 8 it would overlap another that has an offset");
}

TEST(PlanPools, HaveARightPlanWhenTheSearchIsStopped) {
  const Problem problem = problem_in("D.1048576.csv");
  const Pools pools = fast_and_slow(600'000, problem.buffers.size());
  const std::atomic<bool> stop = true;
  expect_right(problem, pools, search_pools(problem, pools, {.stop = &stop}));
  expect_right(problem, pools, search_pools(problem, pools, {.most_seconds = 0.0}));
  expect_right(problem, pools, search_pools(problem, pools, {.most_nodes = 0}));
}

TEST(PlanPools, TakeNothingAndManyBuffers) {
  EXPECT_EQ(search_pools({}, {}).nodes, 0u);
  EXPECT_EQ(search_pools({}, {{{"a", 0}}, {}}).plan.bytes, std::vector<int64_t>{0});
  Problem problem;
  for (int i = 0; i < 2500; ++i) {
    Buffer b;
    b.id = std::to_string(i);
    b.begin = i, b.end = i + 1 + i * 37 % 200;
    b.bytes = 1 + i * 91 % 1000;
    problem.buffers.push_back(b);
  }
  const SearchOptions greedy{.most_nodes = 0};
  const Pools pools = fast_and_slow(10'000, problem.buffers.size());
  const FoundInPools found = search_pools(problem, pools, greedy);
  expect_right(problem, pools, found);
  EXPECT_GT(found.plan.bytes[0], 9000);
  // A pool that has room for all gets all, at once.
  const Pools large = fast_and_slow(1'000'000, problem.buffers.size());
  EXPECT_EQ(search_pools(problem, large, greedy).plan.bytes[1], 0);
}

TEST(PlanPoolsVerifier, SeesEachFault) {
  const Problem problem = problem_of({{0, 4, 8}, {2, 6, 8}, {2, 8, 8}});
  const Pools pools{{{"a", 16}, {"b", {}}}, {{0}, {0, 1}, {1}}};
  const auto fault = [&](const PooledPlan& plan) { return find_fault(problem, pools, plan).value_or(""); };
  EXPECT_EQ(fault({{0, 0, 1}, {0, 8, 0}, {16, 8}}), "");
  EXPECT_EQ(fault({{0, 1, 1}, {0, 8, 0}, {8, 16}}), "");
  EXPECT_EQ(fault({{0, 0, 0}, {0, 8, 0}, {16, 0}}), "buffer 'b2' lies in pool 0, where it must not");
  EXPECT_EQ(fault({{0, 2, 1}, {0, 8, 0}, {16, 8}}), "buffer 'b1' lies in pool 2, where it must not");
  EXPECT_EQ(fault({{0, 0, 1}, {0, 4, 0}, {12, 8}}),
            "pool 'a': buffers 'b0' and 'b1' both have bytes [4, 8) at time 2");
  EXPECT_EQ(fault({{0, 0, 1}, {0, 9, 0}, {17, 8}}), "pool 'a': it needs 17 bytes of 16");
  EXPECT_EQ(fault({{0, 0, 1}, {0, 8, 0}, {16, 9}}), "pool 'b': it needs 8 bytes, and says 9");
  EXPECT_EQ(fault({{0, 0, 1}, {0, 8}, {16, 8}}), "3 pools and 2 offsets for 3 buffers");
  EXPECT_EQ(fault({{0, 0, 1}, {0, 8, 0}, {16}}), "bytes of 1 pools for 2");
}

TEST(PlanPools, AreRefusedWithWhatIsWrong) {
  const auto error = [](const std::function<void(Problem&, Pools&)>& change) {
    Problem problem = problem_of({{0, 4, 8}, {2, 6, 8}});
    Pools pools = fast_and_slow(8, 2);
    change(problem, pools);
    return error_of([&] { search_pools(problem, pools); });
  };
  EXPECT_EQ(error([](Problem&, Pools&) {}), "");
  EXPECT_EQ(error([](Problem& p, Pools&) { p.buffers[1].bytes = -1; }),
            "buffer 'b1': its size -1 is below 0");
  EXPECT_EQ(error([](Problem&, Pools& p) { p.choices[1] = {}; }),
            "buffer 'b1': there is no pool that it may lie in");
  EXPECT_EQ(error([](Problem&, Pools& p) { p.choices[1] = {2}; }), "buffer 'b1': its pool 2 is none of 2");
  EXPECT_EQ(error([](Problem&, Pools& p) {
              p.choices[1] = {1, 0, 1};
            }),
            "buffer 'b1': one of its pools is there twice");
  EXPECT_EQ(error([](Problem&, Pools& p) { p.choices.pop_back(); }), "pools of 1 buffers for 2");
  EXPECT_EQ(error([](Problem&, Pools& p) { p.all[1].name = "fast"; }), "there are two pools 'fast'");
  EXPECT_EQ(error([](Problem&, Pools& p) { p.all[0].capacity = -1; }),
            "pool 'fast': its capacity -1 is below 0");
  EXPECT_EQ(error([](Problem& p, Pools&) { p.buffers[0].offset = 0; }),
            "buffer 'b0': it has an offset, and so needs one pool, not 2");
  EXPECT_EQ(error([](Problem&, Pools& p) {
              for (int i = 0; i < 300; ++i) p.all.push_back({std::to_string(i), {}});
            }),
            "there are 302 pools, more than 256");
}

}  // namespace
}  // namespace coppice::plan
