// How the cuda device has the driver assemble a kernel, on the fake driver.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

std::vector<int> blocks_of(const std::vector<std::string>& loaded) {
  constexpr std::string_view kBlocks = ".minnctapersm ";
  std::vector<int> all;
  for (const std::string& ptx : loaded)
    all.push_back(std::stoi(ptx.substr(ptx.find(kBlocks) + kBlocks.size())));
  return all;
}

// Kernels that ask for at least so many thread blocks on a multiprocessor have a stack; so many are tried,
// and unloaded.
struct Case {
  int stack_from;
  std::vector<int> tried;
  int unloaded;
};

TEST(CudaCode, AsManyBlocksShareAMultiprocessorAsNeedNoStack) {
  for (const Case& c :
       {Case{100, {12}, 0}, Case{9, {12, 1, 8}, 2}, Case{7, {12, 1, 8, 6}, 3},
        Case{4, {12, 1, 8, 6, 4, 3}, 5}, Case{2, {12, 1, 8, 6, 4, 3}, 5}, Case{0, {12, 1}, 1}}) {
    SCOPED_TRACE(c.stack_from);
    FakeCuda fake({.stack_from_blocks = c.stack_from});
    const int before = fake.driver.calls("cuModuleUnload");
    {
      const auto context = make_intrusive<cuda::Context>(fake.driver.table(), 0);
      const std::string ptx = ptx_of("test.kernel") + "\n.minnctapersm 1\n";
      const auto code = make_intrusive<cuda::CudaCode>(context, ptx, "test.kernel");
      EXPECT_EQ(blocks_of(fake.driver.loaded_ptx()), c.tried);
      EXPECT_EQ(fake.driver.calls("cuModuleUnload") - before, c.unloaded);
      // Where all have one alike, the most blocks are kept.
      const cuda::Context::Scope scope(*context);
      EXPECT_EQ(code->resources(0).stack_bytes, c.stack_from == 0 ? 16 : 0);
    }
    EXPECT_EQ(fake.driver.calls("cuModuleUnload") - before, c.unloaded + 1) << "the one that was kept";
  }
}

}  // namespace
}  // namespace coppice::fake
