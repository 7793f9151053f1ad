// Random launches of many effects against a reference (mixed_model.h): the first seeds.
#include "tests/sparse/mixed_runs.h"

namespace coppice::mixed {

TEST_P(MixedModel, EqualsVectorsUnderRandomLaunches) { run_seeds(0, first_long_seed()); }
TEST_P(MixedModel, GivesWhatVectorsGiveAfterEachLaunchAlone) { run_each_kind(); }
INSTANTIATE_TEST_SUITE_P(Sparse, MixedModel, all_mixed_models(), mixed_test_name);

}  // namespace coppice::mixed
