// Random lists against a model of them (list_model.h): the seeds that the stress test has not run.
#include "tests/sparse/list_model.h"

namespace coppice {

TEST_P(ListModel, EqualAMapOfVectorsUnderManyRandomOperations) {
  const int seeds = model_runs(std::get<0>(GetParam())).seeds;
  run_seeds(seeds / 10, seeds);
}
INSTANTIATE_TEST_SUITE_P(SparseLong, ListModel, all_list_models(), list_test_name);

}  // namespace coppice
