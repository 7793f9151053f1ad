// Random functions against the same given one by one (random_functions.h): the seeds that the stress test has
// not run.
#include "tests/sparse/random_functions.h"
#include "tests/sparse/random_functions_fake.h"

namespace coppice::random_functions {
namespace {

class ManyRandomFunctions : public testing::TestWithParam<std::string> {};

TEST_P(ManyRandomFunctions, EqualTheirStatementsGivenOneByOne) {
  const uint64_t n = seeds_of(GetParam());
  run_seeds(GetParam(), n, 10 * n);
}

TEST(ManyRandomFunctionsOnTheFakeDriver, EqualTheirStatementsGivenOneByOne) {
  run_seeds_on_the_fake_driver(kSeedsOnTheFakeDriver, 20 * kSeedsOnTheFakeDriver);
}

INSTANTIATE_TEST_SUITE_P(SparseLong, ManyRandomFunctions, testing::ValuesIn(test_devices_by_threads()),
                         device_test_name);

}  // namespace
}  // namespace coppice::random_functions
