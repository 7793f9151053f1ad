// Random lists against a model of them (list_model.h): the first tenth of the seeds.
#include "tests/sparse/list_model.h"

namespace coppice {

TEST_P(ListModel, EqualAMapOfVectorsUnderRandomOperations) {
  run_seeds(0, model_runs(std::get<0>(GetParam())).seeds / 10);
}
INSTANTIATE_TEST_SUITE_P(Sparse, ListModel, all_list_models(), list_test_name);

}  // namespace coppice
