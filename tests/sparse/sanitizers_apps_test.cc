// Sanitizers see into kernels: planted faults are reported with the kernel's name, file and line, and right
// kernels are left in peace. Needs a build with that sanitizer (presets asan and tsan).
#include "gpu/jit/sanitizer.h"
#include "tests/sparse/watched_program.h"

namespace coppice {
namespace {

Watched run_planted(const std::string& what) {
  return watch("env TSAN_OPTIONS=halt_on_error=1:suppressions='" COPPICE_TSAN_SUPPRESSIONS
               "' '" COPPICE_PLANTED_PROGRAM "' " +
               what);
}
// "coppice: kernel planted.write_one_place at <folder>/planted.kernels.cc:31", alone
// on its line or with more behind.
void expect_kernel(const Watched& run, const std::string& kernel, const std::string& mark) {
  const std::string head = "\ncoppice: kernel planted." + kernel + " at ", place = "/" + planted_place(mark);
  for (size_t at = run.output.find(head); at != std::string::npos; at = run.output.find(head, at + 1)) {
    const std::string line = run.output.substr(at + 1, run.output.find('\n', at + 1) - at - 1);
    const size_t found = line.find(place);
    if (found == std::string::npos) continue;
    const size_t behind = found + place.size();
    if (behind == line.size() || line[behind] == ',') return;
  }
  ADD_FAILURE() << "nothing about " << kernel << place << " in:\n" << run.output;
}
void expect_report(const Watched& run, const std::string& words) {
  EXPECT_NE(run.exit_code, 0);
  EXPECT_TRUE(run.has(words)) << run.output;
}

class ThreadSanitizer : public testing::Test {
 protected:
  void SetUp() override {
    if (jit::kSanitizer != jit::Sanitizer::kThread) GTEST_SKIP() << "built without ThreadSanitizer";
  }
};
class AddressSanitizer : public testing::Test {
 protected:
  void SetUp() override {
    if (jit::kSanitizer != jit::Sanitizer::kAddress) GTEST_SKIP() << "built without AddressSanitizer";
  }
};

TEST_F(ThreadSanitizer, NamesTheLineWhereItemsRace) {
  const Watched run = run_planted("race");
  expect_report(run, "WARNING: ThreadSanitizer: data race");
  expect_kernel(run, "write_one_place", "race");
}
TEST_F(ThreadSanitizer, NamesBothLinesWhereAnAtomicSumIsReadPlainly) {
  const Watched run = run_planted("atomics");
  expect_report(run, "WARNING: ThreadSanitizer: data race");
  expect_kernel(run, "add_and_read", "add");
  expect_kernel(run, "add_and_read", "read");
}
TEST_F(ThreadSanitizer, SeesThatLaunchesFollowEachOther) {
  const Watched run = run_planted("right");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(run.has("8192 right, sum 163860")) << run.output;
}

TEST_F(AddressSanitizer, NamesTheLineThatWritesPastAnArgument) {
  const Watched run = run_planted("overrun");
  expect_report(run, "ERROR: AddressSanitizer: heap-buffer-overflow");
  expect_kernel(run, "write_past_the_end", "overrun");
}
TEST_F(AddressSanitizer, NamesTheLineThatWritesPastAnArrayOfTheKernel) {
  const Watched run = run_planted("stack");
  expect_report(run, "ERROR: AddressSanitizer: stack-buffer-overflow");
  expect_kernel(run, "write_past_a_local_array", "stack overrun");
}
TEST_F(AddressSanitizer, NamesTheLineThatCopiesTooMuch) {
  const Watched run = run_planted("copy");
  expect_report(run, "ERROR: AddressSanitizer: heap-buffer-overflow");
  expect_kernel(run, "copy_past_the_end", "copy");
}
TEST_F(AddressSanitizer, LeavesRightKernelsInPeace) {
  EXPECT_EQ(run_planted("right").exit_code, 0);
  EXPECT_EQ(run_planted("step").exit_code, 0);
}

}  // namespace
}  // namespace coppice
