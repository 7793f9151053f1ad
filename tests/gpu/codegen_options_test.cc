// gpu/codegen_options.h: the words of COPPICE_DEBUG.
#include "gpu/codegen_options.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace coppice::jit {
namespace {

TEST(CodegenOptions, ReadACommaList) {
  EXPECT_EQ(parse_codegen_options("step"), (CodegenOptions{true, false}));
  EXPECT_EQ(parse_codegen_options("checks"), (CodegenOptions{false, true}));
  EXPECT_EQ(parse_codegen_options("checks,step"), (CodegenOptions{true, true}));
}

TEST(CodegenOptions, ReadOneAsAllAndZeroAsNone) {
  EXPECT_EQ(parse_codegen_options("1"), (CodegenOptions{true, true}));
  EXPECT_EQ(parse_codegen_options("0"), CodegenOptions{});
  EXPECT_EQ(parse_codegen_options(""), CodegenOptions{});
}

TEST(CodegenOptions, RefuseAnyOtherWordAndSayWhichThereAre) {
  for (const char* words : {"stepp", "step,", ",checks", "step,,checks", "1,step", "step checks", "STEP"}) {
    try {
      parse_codegen_options(words);
      ADD_FAILURE() << words << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage) << words;
    }
  }
  try {
    parse_codegen_options("step,chekcs");
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "COPPICE_DEBUG: 'chekcs' is not known; expected a comma list of step and checks, or 1 for both, "
        "or 0 for none");
  }
}

}  // namespace
}  // namespace coppice::jit
