// `coppice plan`, as a user runs it.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <vector>

#include "executor/plan/csv.h"
#include "executor/plan/verify.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

const std::string kTable = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

// Writes a table of 140 buffers whose smallest plan takes minutes, at least: with the last 40, all memory is
// needed at every time.
std::string write_hard_table(const TemporaryFolder& folder) {
  std::mt19937 random(1);
  std::string table = "id,lower,upper,size\n";
  std::vector<uint64_t> load(40);
  for (int i = 0; i < 100; ++i) {
    const auto begin = random() % 30, end = begin + 1 + random() % 10,
               bytes = 1'000'000 + random() % 9'000'000;
    table += fmt::format("b{},{},{},{}\n", i, begin, end, bytes);
    for (auto time = begin; time < end; ++time) load[time] += bytes;
  }
  const uint64_t most = *std::max_element(load.begin(), load.end());
  for (size_t time = 0; time < load.size(); ++time)
    table += fmt::format("rest{},{},{},{}\n", time, time, time + 1, most - load[time]);
  write_text(folder / "hard.csv", table);
  return folder / "hard.csv";
}

TEST(PlanCommand, PrintsTheTableWithOffsets) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kTable);
  const ProgramResult result = run_program({"plan", folder / "p.csv"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const plan::ProblemText text = plan::parse_problem(result.out, "out");
  ASSERT_EQ(text.problem.buffers.size(), 5u);
  EXPECT_EQ(result.out.substr(0, result.out.find('\n')), "id,lower,upper,size,offset");
  std::vector<int64_t> offsets;
  for (const plan::Buffer& b : text.problem.buffers) offsets.push_back(b.offset.value());
  const plan::Plan plan = plan_of(text.problem, offsets);
  EXPECT_EQ(plan::find_fault(text.problem, plan, 12).value_or(""), "");
  EXPECT_EQ(result.err.substr(0, result.err.rfind(';')),
            "5 buffers of 20 bytes together in 12 bytes; no plan needs less");
  // The output is itself a problem, all of whose buffers have offsets.
  write_text(folder / "again.csv", result.out);
  EXPECT_EQ(run_program({"plan", folder / "again.csv"}).out, result.out);
}

TEST(PlanCommand, PrintsJsonAndDraws) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", "id,lower,upper,size\n\"a<\",0,2,4\nb,1,3,8\n");
  const ProgramResult result = run_program({"plan", folder / "p.csv", "--json", "--svg", folder / "p.svg"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "{\n  \"bytes\": 12,\n  \"lower_bound\": 12,\n  \"naive_bytes\": 12,\n  \"is_smallest\": true,\n"
            "  \"nodes\": 0,\n  \"buffers\": [\n    {\"id\": \"\\\"a<\\\"\", \"offset\": 8},\n"
            "    {\"id\": \"b\", \"offset\": 0}\n  ]\n}\n");
  const std::string picture = read_text(folder / "p.svg");
  EXPECT_TRUE(picture.starts_with("<svg "));
  EXPECT_NE(picture.find("<title>&quot;a&lt;&quot;: 4 bytes at 8, times 0 to 2</title>"), picture.npos)
      << picture;
  EXPECT_EQ(run_program({"plan", folder / "p.csv", "--svg", "-"}).out, picture);
}

TEST(PlanCommand, HasTheSamePlanWithAnyNumberOfThreads) {
  const std::filesystem::path tests =
      std::filesystem::path(COPPICE_GOLDEN_FOLDER).parent_path().parent_path();
  const std::string table = tests / "executor/plan_data/D.1048576.csv";
  const ProgramResult one = run_program({"plan", table, "--threads", "1"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(run_program({"plan", table, "--threads", "3"}).out, one.out);
  EXPECT_EQ(run_program({"plan", table}).out, one.out);
  expect_refused(run_program({"plan", table, "--threads", "0"}), 2, {"--threads"});
}

TEST(PlanCommand, SpeaksOfOneBufferAsOfOne) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", "id,lower,upper,size\na,0,2,4\n");
  const ProgramResult fits = run_program({"plan", folder / "p.csv"});
  EXPECT_TRUE((fits.out + fits.err).find("1 buffer of 4 bytes in 4 bytes; no plan needs less") !=
              std::string::npos)
      << fits.out << fits.err;
  expect_refused(run_program({"plan", folder / "p.csv", "--capacity", "3"}), 1,
                 {"no plan fits 3 bytes: at least 4 are needed; one buffer has none without the others: a"});
}

TEST(PlanCommand, SaysWhatDoesNotFit) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kTable);
  expect_refused(run_program({"plan", folder / "p.csv", "--capacity", "11"}), 1,
                 {"p.csv: no plan fits 11 bytes: at least 12 are needed", "these 3 have none"});
  EXPECT_EQ(run_program({"plan", folder / "p.csv", "--capacity", "12"}).exit_code, 0);
  const std::string hard = write_hard_table(folder);
  const std::string bound = std::to_string(lower_bound(plan::parse_problem(read_text(hard), hard).problem));
  expect_refused(run_program({"plan", hard, "--capacity", bound, "--budget", "0.05"}), 1,
                 {"no plan was found that fits " + bound + " bytes: the smallest needs ",
                  "none can need less than " + bound + "; --budget gives it more time"});
}

TEST(PlanCommand, RefusesWhatIsWrongInOneLine) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kTable + "b1,0,1,4\n");
  expect_refused(run_program({"plan", folder / "p.csv"}), 2, {"p.csv:7:1: there is a buffer 'b1' in line 2"});
  expect_refused(run_program({"plan", folder / "none.csv"}), 2, {"cannot read", "No such file"});
  expect_refused(run_program({"plan", folder.path()}), 2, {"cannot read", "directory"});
  expect_refused(run_program({"plan", folder / "p.csv", "--capacity", "-1"}), 2, {"--capacity"});
  expect_refused(run_program({"plan", folder / "p.csv", "--budget", "soon"}), 2, {"--budget"});
  expect_refused(run_program({"plan", folder / "p.csv", "--budget", "nan"}), 2,
                 {"--budget", "nan is no number"});
  write_text(folder / "far.csv", "id,lower,upper,size,offset\na,0,1,1,1152921504606846976\n");
  expect_refused(run_program({"plan", folder / "far.csv"}), 2, {"it does not end within 2^60 bytes"});
  expect_refused(run_program({"plan", folder / "p.csv", "--svg", folder / "p.csv"}), 2,
                 {"--svg", "the table"});
  expect_refused(run_program({"plan"}), 2, {"FILE"});
  write_text(folder / "clash.csv", "id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,2\n");
  expect_refused(run_program({"plan", folder / "clash.csv"}), 2,
                 {"clash.csv: buffer 'b': at its offset 2 it would overlap"});
}

const std::string kPools =
    "id,lower,upper,size,pool\na,0,4,4,fast|slow\nb,0,2,8,fast|slow\nc,1,4,6,slow\nd,0,9,2,\n";

TEST(PlanCommand, PlansSeveralPools) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kPools);
  const std::vector<std::string> words{"plan", folder / "p.csv", "--capacity", "fast=8", "--capacity=2"};
  const ProgramResult result = run_program(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "id,lower,upper,size,pool,offset\na,0,4,4,fast,0\nb,0,2,8,slow,0\nc,1,4,6,slow,8\nd,0,9,2,,0\n");
  EXPECT_EQ(result.err.substr(0, result.err.rfind(';')),
            "pool 'fast': 1 buffer of 4 bytes in 4 of 8 bytes; no plan needs less\n"
            "pool 'slow': 2 buffers of 14 bytes together in 14 bytes; no plan needs less\n"
            "the buffers without a pool: 1 buffer of 2 bytes in 2 of 2 bytes; no plan needs less\n"
            "4 buffers of 20 bytes together in 3 pools");
  // The output is itself a problem, whose buffers have one pool and an offset each.
  write_text(folder / "again.csv", result.out);
  EXPECT_EQ(run_program({"plan", folder / "again.csv"}).out, result.out);
  EXPECT_EQ(run_program(words).out, result.out);
}

TEST(PlanCommand, PrintsJsonOfPoolsAndDrawsEach) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kPools);
  const ProgramResult result =
      run_program({"plan", folder / "p.csv", "--capacity", "fast=8", "--json", "--svg", folder / "p.svg"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(
      result.out,
      "{\n  \"naive_bytes\": 20,\n  \"nodes\": 0,\n  \"pools\": [\n"
      "    {\"name\": \"fast\", \"capacity\": 8, \"buffers\": 1, \"bytes\": 4, \"lower_bound\": 4, "
      "\"naive_bytes\": 4, \"is_smallest\": true},\n"
      "    {\"name\": \"slow\", \"capacity\": null, \"buffers\": 2, \"bytes\": 14, \"lower_bound\": 14, "
      "\"naive_bytes\": 14, \"is_smallest\": true},\n"
      "    {\"name\": \"\", \"capacity\": null, \"buffers\": 1, \"bytes\": 2, \"lower_bound\": 2, "
      "\"naive_bytes\": 2, \"is_smallest\": true}\n"
      "  ],\n  \"buffers\": [\n    {\"id\": \"a\", \"pool\": \"fast\", \"offset\": 0},\n"
      "    {\"id\": \"b\", \"pool\": \"slow\", \"offset\": 0},\n"
      "    {\"id\": \"c\", \"pool\": \"slow\", \"offset\": 8},\n"
      "    {\"id\": \"d\", \"pool\": \"\", \"offset\": 0}\n  ]\n}\n");
  const std::string picture = read_text(folder / "p.svg");
  for (const char* title :
       {">pool 'fast': 1 buffers in 4 of 8 bytes<", ">pool 'slow': 2 buffers in 14 bytes<",
        ">the buffers without a pool: 1 buffers in 2 bytes<"})
    EXPECT_NE(picture.find(title), picture.npos) << picture;
}

TEST(PlanCommand, SaysWhichPoolIsTooSmall) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kPools);
  const auto with = [&](const std::vector<std::string>& capacities) {
    std::vector<std::string> words{"plan", folder / "p.csv"};
    for (const std::string& capacity : capacities) words.insert(words.end(), {"--capacity", capacity});
    return run_program(words);
  };
  expect_refused(
      with({"slow=5"}), 1,
      {"p.csv: no plan fits 5 bytes of pool 'slow': at least 6 are needed; one buffer has none without the "
       "others: c"});
  expect_refused(with({"1"}), 1, {"no plan fits 1 bytes for the buffers without a pool: at least 2"});
  expect_refused(with({"fast=3", "slow=8"}), 1,
                 {"no plan fits 8 bytes of pool 'slow': at least ",
                  "have none without the others, unless more of them lie in other pools: "});
  EXPECT_EQ(with({"fast=0"}).exit_code, 0) << "all lie in the other pool";
}

TEST(PlanCommand, RefusesCapacitiesOfNoPool) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kPools);
  write_text(folder / "plain.csv", kTable);
  write_text(folder / "named.csv", "id,lower,upper,size,pool\na,0,4,4,fast\n");
  const auto with = [&](const char* file, const std::vector<std::string>& capacities) {
    std::vector<std::string> words{"plan", folder / file};
    for (const std::string& capacity : capacities) words.insert(words.end(), {"--capacity", capacity});
    return run_program(words);
  };
  expect_refused(with("p.csv", {"fsat=4"}), 2,
                 {"--capacity: there is no pool 'fsat' in ", "p.csv; is it 'fast'?"});
  expect_refused(with("p.csv", {"other=4"}), 2, {"--capacity: there is no pool 'other' in "});
  expect_refused(with("p.csv", {"fast=4", "slow=9", "fast=4"}), 2,
                 {"--capacity: there are two for the pool 'fast'"});
  expect_refused(with("plain.csv", {"12", "13"}), 2,
                 {"--capacity: there are two for the buffers without a pool"});
  expect_refused(with("p.csv", {"=4"}), 2, {"--capacity: '=4' has no pool's name in front of '='"});
  for (const char* value :
       {"fast=", "fast", "fast=x", "fast=-1", "fast=4.5", "fast=2000000000000000000", "4 "})
    expect_refused(with("p.csv", {value}), 2,
                   {"is not N or POOL=N, where N is a number of bytes up to 2^60"});
  expect_refused(with("plain.csv", {"fast=4"}), 2, {"which has no column 'pool'; expected N"});
  expect_refused(with("named.csv", {"4"}), 2, {"N alone is for buffers without a pool", "such as fast=N"});
  expect_refused(with("p.csv", {""}), 2, {"--capacity", "the value is empty"});
}

// XML has no bytes that are no characters.
TEST(PlanCommand, DrawsNamesOfAnyBytes) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv",
             "id,lower,upper,size\n\xff\xfe<&>,0,1,1\n\xef\xbf\xbf,0,1,1\n\xc3\xa4,0,1,1\n");
  ASSERT_EQ(run_program({"plan", folder / "p.csv", "--svg", folder / "p.svg"}).exit_code, 0);
  const std::string svg = read_text(folder / "p.svg");
  EXPECT_NE(svg.find("<title>\xef\xbf\xbd\xef\xbf\xbd&lt;&amp;&gt;: "), std::string::npos);
  EXPECT_NE(svg.find("<title>\xef\xbf\xbd: "), std::string::npos);
  EXPECT_NE(svg.find("<title>\xc3\xa4: "), std::string::npos);
  EXPECT_EQ(svg.find('\xff'), std::string::npos);
}

TEST(PlanCommand, GivesTheBestPlanSoFarWhenItIsInterrupted) {
  const TemporaryFolder folder;
  const std::string hard = write_hard_table(folder);
  ProgramOptions options;
  options.environment["COPPICE_LOG"] = "debug";
  bool is_told = false;
  options.on_stderr = [&](pid_t child, const std::string& err) {
    if (is_told || err.find("looking for a plan of 140 buffers") == err.npos) return;
    is_told = true;
    kill(child, SIGINT);
  };
  const ProgramResult result = run_program({"plan", hard, "--budget", "600"}, options);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(result.err_has("finishing the search for a plan; again to stop now")) << result.err;
  const plan::Problem problem = plan::parse_problem(result.out, "out").problem;
  std::vector<int64_t> offsets;
  for (const plan::Buffer& b : problem.buffers) offsets.push_back(b.offset.value());
  EXPECT_EQ(plan::find_fault(problem, plan_of(problem, offsets)).value_or(""), "");
}

}  // namespace
}  // namespace coppice
