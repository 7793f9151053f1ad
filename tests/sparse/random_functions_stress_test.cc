// Random functions against the same given one by one (random_functions.h): the first seeds.
#include "tests/sparse/random_functions.h"
#include "tests/sparse/random_functions_fake.h"

namespace coppice::random_functions {
namespace {

class RandomFunctions : public testing::TestWithParam<std::string> {};

TEST_P(RandomFunctions, EqualTheirStatementsGivenOneByOne) { run_seeds(GetParam(), 0, seeds_of(GetParam())); }

TEST_P(RandomFunctions, EqualTheirStatementsUnderChecks) {
  CodegenOptions checks;
  checks.checks = true;
  run_seeds(GetParam(), 0, is_emulated_device(GetParam()) ? 5 : 50, checks);
}

TEST(RandomFunctionsOnTheFakeDriver, EqualTheirStatementsGivenOneByOne) {
  run_seeds_on_the_fake_driver(0, kSeedsOnTheFakeDriver);
}

INSTANTIATE_TEST_SUITE_P(Sparse, RandomFunctions, testing::ValuesIn(test_devices_by_threads()),
                         device_test_name);

}  // namespace
}  // namespace coppice::random_functions
