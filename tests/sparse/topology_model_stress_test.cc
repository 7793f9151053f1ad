// Random topology against a model of it (topology_model.h): the first tenth of the seeds.
#include "tests/sparse/topology_model.h"

namespace coppice {

TEST_P(TopologyModel, EqualsASetAndAMapUnderRandomOperations) {
  run_seeds(0, model_runs(std::get<0>(GetParam())).seeds / 10);
}
INSTANTIATE_TEST_SUITE_P(Sparse, TopologyModel, all_models(), model_test_name);

}  // namespace coppice
