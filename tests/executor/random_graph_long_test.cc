// All random graphs (random_graph_stress_test.cc): 100,000 small ones, 1,000 under ThreadSanitizer.
#include "tests/executor/random_graph_run.h"

namespace coppice::executor {
namespace {

// The first tenth is what the stress test has run.
TEST(RandomGraphLong, SmallGraphsGiveWhatASerialInterpreterGives) {
  run_random_graphs(kRandomGraphs / 10, kRandomGraphs - kRandomGraphs / 10, 10, 30);
}

TEST(RandomGraphLong, LargeGraphsGiveWhatASerialInterpreterGives) {
  run_random_graphs(kRandomGraphs / 1000, kRandomGraphs / 100, 30, 1000);
}

}  // namespace
}  // namespace coppice::executor
