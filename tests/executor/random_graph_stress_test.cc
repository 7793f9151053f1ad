// Random graphs with random completion against a serial interpreter; a tenth of what
// random_graph_long_test.cc runs.
#include "tests/executor/random_graph_run.h"

namespace coppice::executor {
namespace {

TEST(RandomGraphStress, SmallGraphsGiveWhatASerialInterpreterGives) {
  run_random_graphs(0, kRandomGraphs / 10, 10, 30);
}

TEST(RandomGraphStress, LargeGraphsGiveWhatASerialInterpreterGives) {
  run_random_graphs(0, kRandomGraphs / 1000, 30, 1000);
}

// Otherwise the comparisons above would show little: what share of outcomes are numbers,
// and that all operations occur.
TEST(RandomGraphStress, GraphsAreNeitherAllErrorsNorWithoutAny) {
  int values = 0, errors = 0;
  std::map<std::string, int> operations;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Module module = RandomGraph::make(seed, 10 + seed % 20);
    for (const Function& f : module.functions)
      for (const Operation& op : f.operations) ++operations[op.name];
    for (const Outcome& outcome : SerialInterpreter(module).run("main", {{3, ""}, {-2, ""}}))
      ++(outcome.error.empty() ? values : errors);
  }
  EXPECT_GT(values, 1000);
  EXPECT_GT(errors, 300);
  for (const char* name :
       {"call", "if", "case", "repeat", "while", "div.i32", "async_twice.i32", "blocking.i32"})
    EXPECT_GT(operations[name], 50) << name;
}

}  // namespace
}  // namespace coppice::executor
