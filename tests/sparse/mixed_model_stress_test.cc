// Random launches of many effects against a reference (mixed_model.h): the first seeds.
#include "tests/sparse/mixed_runs.h"

namespace coppice::mixed {

TEST_P(MixedModel, EqualsVectorsUnderRandomLaunches) {
  run_seeds(0, first_long_seed(), operations_of_each());
  // Seen to lose an append: its thread gave up on a chunk that another was about to link, since some
  // other node had been refused a cell.
  if (is_emulated() && !HasFailure() && !IsSkipped()) run_seeds(77, 78, operations_of_each());
}
TEST_P(MixedModel, GivesWhatVectorsGiveAfterEachLaunchAlone) { run_each_kind(); }
INSTANTIATE_TEST_SUITE_P(Sparse, MixedModel, all_mixed_models(), mixed_test_name);

TEST_P(DrawnModel, EqualsVectorsUnderRandomLaunches) { run_first_seed(); }
INSTANTIATE_TEST_SUITE_P(Sparse, DrawnModel, DrawnModel::first_models(), mixed_test_name);

}  // namespace coppice::mixed
