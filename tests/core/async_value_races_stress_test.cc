// A tenth of the races of async_value_races_long_test.cc; a hundredth under ThreadSanitizer.
#include "tests/core/async_value_races.h"

namespace coppice {
namespace {

TEST(AsyncValueRacesStress, EachContinuationRunsOnceOnTwoToSixteenThreads) {
#if defined(__SANITIZE_THREAD__)
  race_on_2_to_16_threads(100'000);
#else
  race_on_2_to_16_threads(1'000'000);
#endif
}

}  // namespace
}  // namespace coppice
