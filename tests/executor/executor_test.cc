// Executing a function promises this, on one thread.
#include "executor/executor.h"

#include <gtest/gtest.h>

#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

TEST(Executor, RunsAChainAndReturnsItsValues) {
  Program p(R"(
func @main(%x: i32) -> (i32, i32) {
  %one = constant.i32 1
  %y = add.i32 (%x, %one)
  %z = mul.i32 (%y, %y)
  return %y, %z
})");
  const auto results = p.run("main", {i32(4)});
  EXPECT_EQ(results[0]->get<int32_t>(), 5);
  EXPECT_EQ(results[1]->get<int32_t>(), 25);
  EXPECT_EQ(results[0].use_count(), 1u);
}

TEST(Executor, ReturnsIndirectValuesForWhatComesLater) {
  Program p(R"(
func @main(%x: i32) -> i32 {
  %v2 = async_add.i32 (%x, %x)
  %v3 = async_add.i32 (%v2, %v2)
  return %v3
})");
  const auto results = p.run("main", {i32(1)});
  EXPECT_TRUE(results[0]->is_indirect());
  EXPECT_FALSE(results[0]->is_available());
  p.later().run_all();
  EXPECT_EQ(results[0]->get<int32_t>(), 4);
}

TEST(Executor, RepeatsAndBranches) {
  Program p(R"(
func @double(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }
func @same(%x: i32) -> i32 { return %x }
func @step(%x: i32) -> (i32, bool) {
  %limit = constant.i32 100
  %y = call @double (%x)
  %more = less.i32 (%y, %limit)
  return %y, %more
}
func @main(%n: i32, %x: i32, %c: bool) -> (i32, i32, i32) {
  %a = repeat @double (%n, %x)
  %b = if @double, @same (%c, %a)
  %w = while @step (%c, %x)
  return %a, %b, %w
})");
  const auto results = p.run("main", {i32(5), i32(3), make_available_async_value<bool>(true)});
  EXPECT_EQ(results[0]->get<int32_t>(), 96);
  EXPECT_EQ(results[1]->get<int32_t>(), 192);
  EXPECT_EQ(results[2]->get<int32_t>(), 192);
}

TEST(Executor, SkipsWhatDependsOnAnErrorAndNamesTheWay) {
  Program p(R"(
func @inner(%x: i32) -> (i32, i32) {
  %bad = fail.i32 (%x)
  %worse = add.i32 (%bad, %x)
  %good = add.i32 (%x, %x)
  return %worse, %good
}
func @main(%x: i32) -> (i32, i32) {
  %a, %b = call @inner (%x)
  %c = mul.i32 (%a, %b)
  return %c, %b
})");
  const auto results = p.run("main", {i32(2)});
  ASSERT_TRUE(results[0]->is_error());
  EXPECT_STREQ(results[0]->error().what(),
               "test.graph:3:10: failed [@inner fail.i32 -> @inner add.i32 -> @main mul.i32]");
  EXPECT_EQ(results[1]->get<int32_t>(), 4);
}

TEST(Executor, SaysWhichBranchesAndLoopsWait) {
  Program p(R"(
func @same(%x: i32) -> i32 { return %x }
func @more(%x: i32) -> (i32, bool) { %b = less.i32 (%x, %x) return %x, %b }
func @main(%n: i32, %c: bool, %x: i32) -> (i32, i32, i32) {
  %a = if @same, @same (%c, %x)
  %b = repeat @same (%n, %x)
  %d = while @more (%c, %x)
  return %a, %b, %d
})");
  const auto n = make_unconstructed_async_value<int32_t>();
  const auto c = make_unconstructed_async_value<bool>();
  const auto results = p.run("main", {n, c, i32(1)});
  const std::string waiting = p.request->describe_waiting();
  EXPECT_NE(waiting.find("a choice between @same and 1 more waits for its condition\n"), std::string::npos)
      << waiting;
  EXPECT_NE(waiting.find("repeat @same waits for its count after 0 iterations\n"), std::string::npos)
      << waiting;
  EXPECT_NE(waiting.find("while @more waits for its condition after 0 iterations\n"), std::string::npos)
      << waiting;
  n.emplace(2), c.emplace(true);
  EXPECT_EQ(p.request->describe_waiting(), "");
  EXPECT_EQ(results[2]->get<int32_t>(), 1);
}

}  // namespace
}  // namespace coppice::executor
