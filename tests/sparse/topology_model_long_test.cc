// Random topology against a model of it (topology_model.h): the seeds that the stress test has not run.
#include "tests/sparse/topology_model.h"

namespace coppice {

TEST_P(TopologyModel, EqualsASetAndAMapUnderManyRandomOperations) {
  const int seeds = model_runs(std::get<0>(GetParam())).seeds;
  run_seeds(seeds / 10, seeds);
}
INSTANTIATE_TEST_SUITE_P(SparseLong, TopologyModel, all_models(), model_test_name);

}  // namespace coppice
