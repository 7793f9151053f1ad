// Ten million races of and_then() against completion; minutes under ThreadSanitizer.
#include "tests/core/async_value_races.h"

namespace coppice {
namespace {

TEST(AsyncValueRacesLong, EachOfTenMillionContinuationsRunsOnceOnTwoToSixteenThreads) {
  race_on_2_to_16_threads(10'000'000);
}

}  // namespace
}  // namespace coppice
