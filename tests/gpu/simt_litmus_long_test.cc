// The litmus programs of simt_litmus.h, a million executions and more each. Prints the rows of the table in
// docs/debugging.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "tests/gpu/simt_litmus.h"

namespace coppice::simt {
namespace {

// Each way to place threads and words runs so often; together that is a million of each program and more.
constexpr uint64_t kAllowed = 10'000, kForbidden = 400'000;

class SimtLitmusLong : public testing::TestWithParam<LitmusProgram> {};

TEST_P(SimtLitmusLong, CountsTheOutcome) {
  for (const LitmusCase& c : litmus_cases(GetParam())) {
    const bool allowed = c.program->allowed;
    const LitmusCount count = run_litmus(c, allowed ? kAllowed : kForbidden, 3, false);
    fmt::print("{} {}: {} of {}\n", name_of(c), allowed ? "allowed" : "forbidden", count.seen,
               count.executions);
    EXPECT_EQ(count.seen != 0, allowed) << name_of(c);
  }
}

std::string program_name(const testing::TestParamInfo<LitmusProgram>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Programs, SimtLitmusLong, testing::ValuesIn(litmus_programs()), program_name);

}  // namespace
}  // namespace coppice::simt
