// The runs of lifetime_runs.h, a thousand times.
#include "tests/sparse/lifetime_runs.h"

namespace coppice {
namespace {

TEST_F(Lifetimes, AThousandDevicesAreMadeAndDropped) { make_and_drop(4, 250, 100); }

TEST_F(Lifetimes, AThousandProgramsEnd) { end_programs(1000, 100); }

}  // namespace
}  // namespace coppice
