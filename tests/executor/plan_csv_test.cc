// Planning problems as text: all forms, and one clear line for each that is wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/executor/plan_util.h"

namespace coppice::plan {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_problem(text, "p.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PlanText, HasColumnsInAnyOrderWithOthersBetween) {
  const ProblemText text = parse_problem(
      "\xef\xbb\xbfsize, who,lower,id,upper,alignment,offset,hint,gaps\r\n"
      "64,me,-2,x,7,16,32,,1-2 3-5@0:8\r\n"
      "\r\n"
      "8,you,0,y,1,,,12,\r\n",
      "p.csv");
  ASSERT_EQ(text.problem.buffers.size(), 2u);
  const Buffer &x = text.problem.buffers[0], &y = text.problem.buffers[1];
  EXPECT_EQ(x.id, "x");
  EXPECT_EQ(std::tuple(x.begin, x.end, x.bytes, x.alignment), std::tuple(-2, 7, 64, 16));
  EXPECT_EQ(x.offset, 32);
  EXPECT_EQ(x.hint, std::nullopt);
  ASSERT_EQ(x.gaps.size(), 2u);
  EXPECT_EQ(std::pair(x.gaps[1].begin, x.gaps[1].end), std::pair(int64_t{3}, int64_t{5}));
  EXPECT_FALSE(x.gaps[0].window.has_value());
  ASSERT_TRUE(x.gaps[1].window.has_value());
  EXPECT_EQ(x.gaps[1].window->end, 8);
  EXPECT_EQ(y.alignment, 1);
  EXPECT_EQ(y.hint, 12);
  EXPECT_EQ(print_plan(text, plan_of(text.problem, {32, 0})),
            "size,who,lower,id,upper,alignment,offset,hint,gaps\n"
            "64,me,-2,x,7,16,32,,1-2 3-5@0:8\n"
            "8,you,0,y,1,,0,12,\n");
}

TEST(PlanText, CountsTheLastTimeWhereTheColumnIsCalledEnd) {
  const Problem problem = parse_problem("buffer,start,end,size\na,0,3,4\n", "p.csv").problem;
  EXPECT_EQ(problem.buffers[0].end, 4);
}

TEST(PlanText, IsPrintedWithAColumnOfOffsets) {
  const ProblemText text = parse_problem("id,lower,upper,size\na,0,3,4\nb,1,2,8", "p.csv");
  EXPECT_EQ(print_plan(text, plan_of(text.problem, {0, 4})),
            "id,lower,upper,size,offset\na,0,3,4,0\nb,1,2,8,4\n");
}

TEST(PlanText, HasPoolsInTheOrderInWhichItNamesThem) {
  const std::string text =
      "id,lower,upper,size,pool\na,0,3,4,fast | slow\nb,1,2,8,\nc,1,2,8,slow\nd,1,2,8,slow|fast\n";
  ProblemText read = parse_problem(text, "p.csv");
  EXPECT_TRUE(read.has_pools);
  ASSERT_EQ(read.pools.all.size(), 3u);
  EXPECT_EQ(read.pools.all[0].name, "fast");
  EXPECT_EQ(read.pools.all[1].name, "slow");
  EXPECT_EQ(read.pools.all[2].name, "") << "of buffers that name none";
  EXPECT_EQ(read.pools.choices, (std::vector<std::vector<uint32_t>>{{0, 1}, {2}, {1}, {1, 0}}));
  EXPECT_EQ(print_plan(read, PooledPlan{{1, 2, 1, 0}, {0, 1, 4, 3}, {}}),
            "id,lower,upper,size,pool,offset\na,0,3,4,slow,0\nb,1,2,8,,1\nc,1,2,8,slow,4\nd,1,2,8,fast,3\n");
  const ProblemText plain = parse_problem("id,lower,upper,size\na,0,3,4\n", "p.csv");
  EXPECT_FALSE(plain.has_pools);
  EXPECT_EQ(plain.pools.choices, (std::vector<std::vector<uint32_t>>{{0}}));
  EXPECT_EQ(print_plan(plain, PooledPlan{{0}, {7}, {}}), "id,lower,upper,size,offset\na,0,3,4,7\n");
  std::string many = "id,lower,upper,size,pool\n";
  for (int i = 0; i < 257; ++i) many += fmt::format("b{0},0,1,1,p{0}\n", i);
  EXPECT_EQ(error_of(many), "p.csv:258:12: more than 256 pools");
}

TEST(PlanText, IsRefusedWithItsPlace) {
  const std::string head = "id,lower,upper,size\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "p.csv:1:1: there is no line of column names, such as id,lower,upper,size"},
      {"\n\n", "p.csv:1:1: there is no line of column names, such as id,lower,upper,size"},
      {"id,lower,uper,size\n", "p.csv:1:1: there is no column 'upper'; is it 'uper'?"},
      {"id,lower,upper\n", "p.csv:1:1: there is no column 'size'"},
      {"id,lower,start,upper,size\n", "p.csv:1:10: the column 'start' is there twice"},
      {"id,lower,upper,end,size\n",
       "p.csv:1:16: both columns upper and end are there; one says when a buffer ends"},
      {head + "a,0,3\n", "p.csv:2:5: 3 fields in a line; the first one names 4 columns"},
      {head + "a,0,3,4,\n", "p.csv:2:9: 5 fields in a line; the first one names 4 columns"},
      {head + "a,0,x,4\n", "p.csv:2:5: its end is 'x'; expected a whole number"},
      {head + "a,0,3,4.5\n", "p.csv:2:7: its size is '4.5'; expected a whole number"},
      {head + "a,0,3,99999999999999999999\n",
       "p.csv:2:7: its size is '99999999999999999999'; expected a whole number up to 2^60"},
      {head + "a,0,,4\n", "p.csv:2:5: the 'upper' is empty"},
      {head + ",0,1,4\n", "p.csv:2:1: the 'id' is empty"},
      {head + "a,0,3,4\n\na,0,3,4\n", "p.csv:4:1: there is a buffer 'a' in line 2"},
      {head + "a,3,3,4\n", "p.csv:2:1: buffer 'a': its time [3, 3) is empty"},
      {head + "a,0,3,-4\n", "p.csv:2:1: buffer 'a': its size -4 is below 0"},
      {"id,lower,upper,size,gaps\na,0,9,4,2_3\n",
       "p.csv:2:9: '2_3' is no gap; expected BEGIN-END, or BEGIN-END@LOW:HIGH"},
      {"id,lower,upper,size,gaps\na,0,9,4,1-2 2-z\n",
       "p.csv:2:13: a gap's part is 'z'; expected a whole number"},
      {"id,lower,upper,size,pool\na,0,9,4,fast||slow\n",
       "p.csv:2:14: a name is empty in 'fast||slow'; expected POOL, or POOL|POOL"},
      {"id,lower,upper,size,pool\na,0,9,4,|\n",
       "p.csv:2:9: a name is empty in '|'; expected POOL, or POOL|POOL"},
      {"id,lower,upper,size,pool\na,0,9,4,x|y|x\n", "p.csv:2:13: the pool 'x' is there twice"},
      {"id,lower,upper,size,pool\na,0,9,4,x\x01y\n",
       "p.csv:2:9: there is a control character in the pool's name 'x?y'"},
      {"id,lower,upper,size,pool,offset\na,0,9,4,x|y,0\n",
       "p.csv:2:9: a buffer that has an offset needs one pool, not 2"},
      {"id,lower,upper,size,pool,pool\n", "p.csv:1:26: the column 'pool' is there twice"},
      {head + "a,0,1,200000000000000000\nb,0,1,200000000000000000\n",
       "p.csv: buffer 'b': the sizes and alignments up to it are together more than 2^58"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(error_of(text), error) << text;
}

// Bytes that are no text, and whatever else: an error, or a problem.
TEST(PlanText, MayHoldAnything) {
  std::mt19937_64 random(1);
  const std::string letters = "id,lower,upper,size\n0123456789-@: \t\r\xff\0gapspool|";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = random() % 2 == 0 ? "id,lower,upper,size,gaps,pool\na,0,9,4,1-2,x|y\n" : "";
    for (uint64_t n = random() % 40; n > 0; --n)
      text.insert(random() % (text.size() + 1), 1, letters[random() % letters.size()]);
    const std::string error = error_of(text);
    EXPECT_EQ(error.find('\n'), error.npos) << error;
  }
}

}  // namespace
}  // namespace coppice::plan
