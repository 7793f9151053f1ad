// A million cycles of memory_cycles.h.
#include "tests/sparse/memory_cycles.h"

namespace coppice {

TEST_P(MemoryCycles, AMillionLeaveMemoryAsItWasAfterTheFirstTen) {
  run_cycles(is_emulated() ? 1000 : 1'000'000);
}
INSTANTIATE_TEST_SUITE_P(SparseLong, MemoryCycles, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace coppice
