// A tenth of the cycles of memory_cycles.h.
#include "tests/sparse/memory_cycles.h"

namespace coppice {

TEST_P(MemoryCycles, LeaveMemoryAsItWasAfterTheFirstTen) { run_cycles(is_emulated() ? 100 : 100'000); }
INSTANTIATE_TEST_SUITE_P(Sparse, MemoryCycles, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace coppice
