// gpu/simt/weak_memory.h: the outcomes of litmus programs that PTX allows are seen, and those that it forbids
// are not.
#include "tests/gpu/simt_litmus.h"

#include <gtest/gtest.h>

namespace coppice::simt {
namespace {

TEST(SimtLitmus, ShowsWhatPtxAllowsWithinTenThousandExecutions) {
  for (const LitmusProgram& program : litmus_programs()) {
    if (!program.allowed) continue;
    for (const LitmusCase& c : litmus_cases(program))
      EXPECT_GT(run_litmus(c, 10'000, 1, true).seen, 0u) << name_of(c) << ": " << program.text;
  }
}

TEST(SimtLitmus, NeverShowsWhatPtxForbids) {
  for (const LitmusProgram& program : litmus_programs()) {
    if (program.allowed) continue;
    for (const LitmusCase& c : litmus_cases(program))
      EXPECT_EQ(run_litmus(c, 10'000, 2, false).seen, 0u) << name_of(c) << ": " << program.text;
  }
}

}  // namespace
}  // namespace coppice::simt
