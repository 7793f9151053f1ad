// Random schedules of users, faults, crashes and shutdowns: a part of those of protocol_random_long_test.cc.
#include <gtest/gtest.h>

#include "tests/remote/random_world.h"

namespace coppice::executor::remote {
namespace {

#ifdef COPPICE_DEBUG
constexpr uint64_t kSeeds = 6'000;
#else
constexpr uint64_t kSeeds = 30'000;
#endif

TEST(ProtocolRandom, ManySeedsKeepWhatIsUsedAndFreeWhatIsNot) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    ASSERT_EQ(RandomWorld::try_seed(seed), "") << "seed " << seed;
}

}  // namespace
}  // namespace coppice::executor::remote
