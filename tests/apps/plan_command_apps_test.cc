// `coppice plan`, as a user runs it.
#include <fmt/format.h>

#include <filesystem>

#include "executor/plan/csv.h"
#include "executor/plan/verify.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

const std::string kTable = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

// Nobody knows its smallest plan.
std::string hard_table() {
  const std::filesystem::path tests =
      std::filesystem::path(COPPICE_GOLDEN_FOLDER).parent_path().parent_path();
  return tests / "executor/plan_data/D.1048576.csv";
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

TEST(PlanCommand, SaysWhatDoesNotFit) {
  const TemporaryFolder folder;
  write_text(folder / "p.csv", kTable);
  expect_refused(run_program({"plan", folder / "p.csv", "--capacity", "11"}), 1,
                 {"p.csv: no plan fits 11 bytes: at least 12 are needed", "these 3 have none"});
  EXPECT_EQ(run_program({"plan", folder / "p.csv", "--capacity", "12"}).exit_code, 0);
  expect_refused(run_program({"plan", hard_table(), "--capacity", "990000", "--budget", "0.05"}), 1,
                 {"no plan was found that fits 990000 bytes: the smallest needs ",
                  "none can need less than 986112; --budget gives it more time"});
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
  ProgramOptions options;
  // The program says nothing before it is told to stop: a second process tells it.
  options.prefix = {"timeout", "--preserve-status", "--signal=INT", "1"};
  const ProgramResult result = run_program({"plan", hard_table(), "--budget", "600"}, options);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(result.err_has("finishing the search for a plan; again to stop now")) << result.err;
  const plan::Problem problem = plan::parse_problem(result.out, "out").problem;
  std::vector<int64_t> offsets;
  for (const plan::Buffer& b : problem.buffers) offsets.push_back(b.offset.value());
  EXPECT_EQ(plan::find_fault(problem, plan_of(problem, offsets)).value_or(""), "");
}

}  // namespace
}  // namespace coppice
