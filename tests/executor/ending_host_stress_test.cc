// Every moment and every way in which a program ends while its host is at work is clean.
#include "tests/core/ending_runs.h"

namespace coppice {
namespace {

TEST(EndingHosts, ProgramsEndInRandomWays) { run_endings("ending_host_program", 60, 1); }

}  // namespace
}  // namespace coppice
