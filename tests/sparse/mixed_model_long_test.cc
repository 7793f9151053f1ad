// Random launches of many effects against a reference (mixed_model.h): the seeds that the stress test has not
// run.
#include "tests/sparse/mixed_runs.h"

namespace coppice::mixed {

TEST_P(MixedModel, EqualsVectorsUnderManyRandomLaunches) {
  run_seeds(first_long_seed(), num_seeds(), operations_of_each());
}
INSTANTIATE_TEST_SUITE_P(SparseLong, MixedModel, all_mixed_models(), mixed_test_name);

TEST_P(DrawnModel, EqualsVectorsUnderManyRandomLaunches) { run_others(); }
INSTANTIATE_TEST_SUITE_P(SparseLong, DrawnModel, DrawnModel::models(1), mixed_test_name);

}  // namespace coppice::mixed
