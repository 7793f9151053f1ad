// The runs of ending_host_stress_test.cc, a thousand times.
#include "tests/core/ending_runs.h"

namespace coppice {
namespace {

TEST(EndingHosts, AThousandProgramsEnd) { run_endings("ending_host_program", 1000, 1000); }

}  // namespace
}  // namespace coppice
