// gpu/jit/fatal_error.h: what is said when LLVM ends the process. By itself: it calls LLVM, which other tests
// link no more than other users of the library do.
#include <gtest/gtest.h>

#include "gpu/jit/fatal_error.h"
#include "gpu/jit/specializer.h"

// LLVM's own way to end the process; its headers belong to gpu/jit.
namespace llvm {
[[noreturn]] void report_fatal_error(const char* reason, bool is_crash);
}

namespace coppice {
namespace {

TEST(FatalErrorsDeathTest, NameTheKernelOnOneLine) {
  jit::host_target();  // installs the handlers
  const jit::CompilingKernel kernel("heat.diffuse");
  EXPECT_DEATH(
      llvm::report_fatal_error("Cannot select: this\nand that\n", true),
      "^error: kernel heat.diffuse: LLVM cannot compile it and ends the program: Cannot select: this and "
      "that\n$");
}

}  // namespace
}  // namespace coppice
