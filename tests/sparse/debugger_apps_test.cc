// COPPICE_DEBUG=step: a debugger stops in kernels, names their lines and steps from one to the next.
#include <algorithm>
#include <vector>

#include "tests/sparse/watched_program.h"

namespace coppice {
namespace {

// Sanitizers' leak check cannot run beside a debugger.
Watched debug(const std::vector<std::string>& commands, const std::string& mode = "step") {
  std::string line =
      "env COPPICE_DEBUG=" + mode +
      " ASAN_OPTIONS=detect_leaks=0 gdb -nx -q -batch -ex 'set breakpoint pending on' -ex 'set width 0'";
  for (const std::string& command : commands) line += " -ex '" + command + "'";
  return watch(line + " --args '" COPPICE_PLANTED_PROGRAM "' step");
}

class Debugger : public testing::Test {
 protected:
  void SetUp() override {
    if (watch("gdb --version").exit_code != 0) GTEST_SKIP() << "no gdb on PATH";
    const Watched trial = watch("gdb -nx -q -batch -ex run --args true");
    if (!trial.has("exited normally")) GTEST_SKIP() << "gdb cannot run a program here: " << trial.output;
  }
};

// Where the words stand in the output, one after another; a failure when they do not.
void expect_in_order(const Watched& run, const std::vector<std::string>& words) {
  size_t at = 0;
  for (const std::string& word : words) {
    const size_t found = run.output.find(word, at);
    ASSERT_NE(found, std::string::npos) << "no '" << word << "' at its place in:\n" << run.output;
    at = found + word.size();
  }
}

TEST_F(Debugger, StopsInAKernelAndNamesItsLine) {
  const Watched run = debug({"break " + planted_place("square"), "run", "backtrace", "delete", "continue"});
  expect_in_order(run, {"hit Breakpoint 1", "square_all", planted_place("square"), "\n#0", "square_all",
                        planted_place("square"), "coppice_kernel_square_all", "DirectOrder::repeat",
                        "squares: 2 5 10 17", "exited normally"});
}

TEST_F(Debugger, StepsFromOneLineOfAKernelToTheNext) {
  const Watched run =
      debug({"break " + planted_place("load"), "run", "next", "frame", "next", "frame", "step", "frame"});
  expect_in_order(run, {"hit Breakpoint 1", planted_place("load"), "\n#0", planted_place("square"), "\n#0",
                        planted_place("shift"), "\n#0", planted_place("store")});
}

TEST_F(Debugger, StepsOverWhatACellCallsAndIntoIt) {
  const Watched over =
      debug({"break " + planted_place("gather"), "run", "delete", "next", "frame", "next", "frame"});
  expect_in_order(over, {"hit Breakpoint 1", "smooth", planted_place("gather"), "\n#0",
                         planted_place("middle"), "\n#0", planted_place("result")});
  const Watched into = debug({"break " + planted_place("gather"), "run", "delete", "step", "backtrace"});
  expect_in_order(into, {"hit Breakpoint 1", planted_place("gather"), "\n#0", "sparse/device/stencils.h:",
                         "\n#1", "smooth", planted_place("gather"), "coppice_kernel_smooth"});
}

TEST_F(Debugger, SeesNoKernelsWithoutTheMode) {
  const Watched run = debug({"break " + planted_place("square"), "run"}, "0");
  EXPECT_FALSE(run.has("hit Breakpoint")) << run.output;
  EXPECT_TRUE(run.has("exited normally")) << run.output;
}

TEST(DebugMode, RefusesAWordThatItDoesNotKnow) {
  const Watched run = watch("env COPPICE_DEBUG=stepp '" COPPICE_PLANTED_PROGRAM "' step");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.output,
            "planted_program: error: COPPICE_DEBUG: 'stepp' is not known; expected a comma list of step and "
            "checks, or "
            "1 for both, or 0 for none\n");
}

}  // namespace
}  // namespace coppice
