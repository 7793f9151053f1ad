// Memory planning: bounds, greedy plans, the exact search, and who looks at plans.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "core/error.h"
#include "executor/plan/exact.h"
#include "executor/plan/greedy.h"
#include "tests/executor/plan_random.h"
#include "tests/executor/plan_util.h"
#include "tests/executor/plan_vectors.h"

namespace coppice::plan {
namespace {

TEST(PlanVectors, AreWhatOtherProjectsPlannersMakeOfThem) {
  for (const PlanVector& vector : plan_vectors()) {
    SCOPED_TRACE(vector.name);
    const Problem problem = vector.problem();
    // Theirs leave out the bytes between what is aligned.
    if (vector.alignment == 1)
      EXPECT_EQ(lower_bound(problem), vector.bound);
    else
      EXPECT_GE(lower_bound(problem), vector.bound);
    const Plan plan = greedy_plan(problem, Order::kSize, Fit::kSmallestGap);
    expect_right(problem, plan);
    EXPECT_EQ(plan.offsets, vector.offsets);
    EXPECT_EQ(plan.bytes, vector.greedy_by_size);
    EXPECT_LE(best_greedy_plan(problem).bytes, vector.greedy_by_size);
    if (vector.alignment == 1) {
      EXPECT_LE(best_greedy_plan(problem).bytes, vector.greedy_by_breadth);
    }
    const Found found = search_plan(problem);
    expect_right(problem, found.plan);
    EXPECT_TRUE(found.is_smallest());
  }
}

// XNNPACK #10800: the room before the first buffer was not seen, and this needed 240.
TEST(PlanVectors, UseTheRoomBeforeTheFirstBuffer) {
  const Problem problem = problem_of({{0, 2, 100}, {1, 3, 80}, {2, 4, 60}});
  EXPECT_EQ(greedy_plan(problem, Order::kSize, Fit::kSmallestGap).bytes, 180);
}

// Five buffers of which greedy by size makes 90 bytes.
TEST(PlanVectors, OfTensorFlowLiteMicroHaveASmallerPlanThanGreedyOnes) {
  for (const PlanVector& vector : plan_vectors()) {
    if (vector.name == "tflm_medium") {
      EXPECT_EQ(search_plan(vector.problem()).plan.bytes, 80);
    }
  }
}

class ChallengingProblem : public testing::TestWithParam<const char*> {};

// MiniMalloc's own search needs 29 s for these six, and no greedy planner solves any.
TEST_P(ChallengingProblem, FitsItsCapacity) {
  const Problem problem = problem_in(fmt::format("{}.1048576.csv", GetParam()));
  EXPECT_GT(best_greedy_plan(problem).bytes, 1'048'576);
  const Found found = search_plan(problem, {.capacity = 1'048'576});
  expect_right(problem, found.plan, 1'048'576);
}

TEST_P(ChallengingProblem, HasTheSamePlanEachTime) {
  const Problem problem = problem_in(fmt::format("{}.1048576.csv", GetParam()));
  const SearchOptions few{.most_nodes = 10'000};
  const Found first = search_plan(problem, few);
  EXPECT_EQ(search_plan(problem, few).plan.offsets, first.plan.offsets);
  EXPECT_LE(first.plan.bytes, best_greedy_plan(problem).bytes);
}

INSTANTIATE_TEST_SUITE_P(MiniMalloc, ChallengingProblem, testing::Values("A", "B", "C", "D", "E", "F"));

TEST(PlanSearch, FindsTheSmallestPlanOfC) {
  const Found found = search_plan(problem_in("C.1048576.csv"));
  EXPECT_EQ(found.plan.bytes, 1'039'360);
  EXPECT_TRUE(found.is_smallest());
}

// MiniMalloc finds no capacity for D when it is to find the smallest.
TEST(PlanSearch, FindsTheSmallestPlanOfD) {
  const Problem problem = problem_in("D.1048576.csv");
  const Found found = search_plan(problem, {.most_nodes = 100'000});
  expect_right(problem, found.plan, 986'112);
  EXPECT_TRUE(found.is_smallest());
}

TEST(PlanSearch, EndsWhereItIsTold) {
  const Problem problem = problem_in("D.1048576.csv");
  const Found few = search_plan(problem, {.most_nodes = 2000});
  EXPECT_LE(few.nodes, 2000u);
  expect_right(problem, few.plan);
  const std::atomic<bool> stop = true;
  const Found stopped = search_plan(problem, {.stop = &stop});
  EXPECT_EQ(stopped.plan.bytes, best_greedy_plan(problem).bytes);
  const Found late = search_plan(problem, {.most_nodes = UINT64_MAX / 2, .most_seconds = 0.05});
  expect_right(problem, late.plan);
}

TEST(PlanSearch, NamesBuffersThatDoNotFit) {
  // Two of three that are needed at once are too much, and a fourth has nothing to do with it.
  const Found found =
      search_plan(problem_of({{0, 9, 60}, {5, 6, 10}, {8, 9, 50}, {0, 2, 5}}), {.capacity = 100});
  EXPECT_EQ(found.infeasible, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(found.lower_bound, 110);
}

// There is enough memory at each time, and no plan.
TEST(PlanSearch, ShowsThatThereIsNoPlanWhereEachTimeHasRoom) {
  const Problem problem = problem_of({{0, 2, 2},
                                      {1, 4, 2},
                                      {3, 6, 2},
                                      {5, 8, 2},
                                      {0, 1, 2},
                                      {7, 8, 2},
                                      {2, 3, 2},
                                      {4, 5, 2},
                                      {6, 7, 2},
                                      {1, 7, 1}});
  const Found found = search_plan(problem);
  expect_right(problem, found.plan);
  EXPECT_TRUE(found.is_smallest());
  EXPECT_EQ(found.plan.bytes, 5);
}

TEST(PlanSearch, EqualsAllPlansTriedOfRandomProblems) {
  for (uint64_t seed = 0; seed < 1500 && !testing::Test::HasFailure(); ++seed) run_plan_seed(seed, 6);
}

TEST(PlanSearch, TakesProblemsOfNothing) {
  EXPECT_EQ(search_plan({}).plan.bytes, 0);
  const Found found = search_plan(problem_of({{0, 1, 0}, {0, 1, 0}}), {.capacity = 0});
  EXPECT_EQ(found.plan.offsets, (std::vector<int64_t>{0, 0}));
}

TEST(GreedyPlan, GoesByHints) {
  Problem problem = problem_of({{0, 2, 4}, {0, 2, 6}, {0, 2, 5}});
  problem.buffers[0].hint = 6, problem.buffers[1].hint = 0, problem.buffers[2].hint = 10;
  EXPECT_EQ(greedy_plan(problem, Order::kHint, Fit::kLowest).offsets, (std::vector<int64_t>{6, 0, 10}));
}

// All are needed at the same time: too many pairs for a look at each.
TEST(GreedyPlan, PutsWhatIsLeftOnTopWhereThereAreTooManyPairs) {
  Problem problem;
  for (int i = 0; i < 8000; ++i) {
    Buffer b;
    b.id = std::to_string(i);
    b.begin = i % 50, b.end = 100 + i % 70;
    b.bytes = 1 + i % 97;
    problem.buffers.push_back(b);
  }
  problem.buffers[7999].offset = 1'000'000;
  const Plan plan = greedy_plan(problem, Order::kSize, Fit::kSmallestGap);
  EXPECT_LE(plan.bytes, naive_bytes(problem) + 1'000'100);
  std::vector<std::pair<int64_t, int64_t>> at;  // all meet at time 60
  for (size_t i = 0; i < plan.offsets.size(); ++i) at.emplace_back(plan.offsets[i], problem.buffers[i].bytes);
  std::sort(at.begin(), at.end());
  for (size_t i = 1; i < at.size(); ++i) ASSERT_LE(at[i - 1].first + at[i - 1].second, at[i].first);
}

TEST(PlanVerifier, SeesEachFault) {
  Problem problem = problem_of({{0, 4, 8}, {2, 6, 8}, {6, 8, 8}});
  problem.buffers[1].alignment = 4;
  const auto fault = [&](std::vector<int64_t> offsets, std::optional<int64_t> capacity = {}) {
    return find_fault(problem, plan_of(problem, std::move(offsets)), capacity).value_or("");
  };
  EXPECT_EQ(fault({0, 8, 0}), "");
  EXPECT_EQ(fault({0, 8, 0}, 16), "");
  EXPECT_EQ(fault({0, 8, 0}, 15), "it needs 16 bytes of 15");
  EXPECT_EQ(fault({0, 4, 0}), "buffers 'b0' and 'b1' both have bytes [4, 8) at time 2");
  EXPECT_EQ(fault({0, 9, 0}), "buffer 'b1' lies at 9, no multiple of 4");
  EXPECT_EQ(fault({-8, 0, 0}), "buffer 'b0' lies at -8");
  EXPECT_EQ(find_fault(problem, {{0, 8}, 16}), "2 offsets for 3 buffers");
  EXPECT_EQ(find_fault(problem, {{0, 8, 0}, 17}), "it needs 16 bytes, and says 17");
  problem.buffers[2].offset = 8;
  EXPECT_EQ(fault({0, 8, 0}), "buffer 'b2' lies at 0, not at 8");
  problem.buffers[0].gaps.push_back({2, 4, Gap::Window{0, 2}});
  EXPECT_EQ(fault({2, 4, 8}), "") << "only its bytes [2, 4) are needed then";
  EXPECT_EQ(fault({3, 4, 8}), "buffers 'b0' and 'b1' both have bytes [4, 5) at time 2");
}

TEST(PlanProblem, IsRefusedWithTheBufferThatIsWrong) {
  const auto error = [](const std::function<void(Buffer&)>& change) {
    Problem problem = problem_of({{0, 4, 8}, {2, 6, 8}});
    change(problem.buffers[1]);
    return error_of([&] { search_plan(problem); });
  };
  EXPECT_EQ(error([](Buffer& b) { b.bytes = -1; }), "buffer 'b1': its size -1 is below 0");
  EXPECT_EQ(error([](Buffer& b) { b.end = 2; }), "buffer 'b1': its time [2, 2) is empty");
  EXPECT_EQ(error([](Buffer& b) { b.alignment = 0; }),
            "buffer 'b1': its alignment 0 is not within 1 and 2^60");
  EXPECT_EQ(error([](Buffer& b) { b.offset = -8; }),
            "buffer 'b1': with its offset -8 it does not end within 2^60 bytes");
  EXPECT_EQ(error([](Buffer& b) { b.offset = 6, b.alignment = 4; }),
            "buffer 'b1': its offset 6 is no multiple of its alignment 4");
  EXPECT_EQ(error([](Buffer& b) {
              b.gaps = {{3, 9, {}}};
            }),
            "buffer 'b1': the gap 3-9 is not within its time, [2, 6), behind the gap before");
  EXPECT_EQ(error([](Buffer& b) {
              b.gaps = {{3, 4, Gap::Window{4, 9}}};
            }),
            "buffer 'b1': the window 4:9 of the gap 3-4 is not within its 8 bytes");
  EXPECT_EQ(error([](Buffer& b) { b.bytes = kMostBytes; }),
            "buffer 'b1': the sizes and alignments up to it are together more than 2^58");
  Problem clash = problem_of({{0, 4, 8}, {2, 6, 8}});
  clash.buffers[0].offset = 0, clash.buffers[1].offset = 4;
  EXPECT_EQ(error_of([&] { search_plan(clash); }),
            "buffer 'b1': at its offset 4 it would overlap another that has an offset");
}

}  // namespace
}  // namespace coppice::plan
