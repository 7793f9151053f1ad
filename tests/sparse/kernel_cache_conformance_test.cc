// Kernels kept on disk, as programs meet them: what is found again, what is not, and what a second process
// gets.
#include <unistd.h>

#include <filesystem>

#include "core/program_file.h"
#include "gpu/kernel_store.h"
#include "tests/core/watch_command.h"
#include "tests/sparse/conformance_fixture.h"
#include "tests/sparse/kept_kernels.h"
#include "tests/sparse/kernel_store_util.h"

namespace coppice {
namespace {

class KernelsOnDisk : public testing::TestWithParam<std::string> {
 protected:
  KernelsOnDisk() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice_conformance_XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~KernelsOnDisk() override { std::filesystem::remove_all(folder); }
  void SetUp() override {
    std::string reason;
    if (!test_device(GetParam(), reason)) GTEST_SKIP() << reason;
  }
  // A fresh device, as another run of a program would have; `work` gets it. Returns hits and misses on disk.
  template <class F>
  std::pair<uint64_t, uint64_t> on_fresh_device(F work, const std::string& max_mb = "64") {
    const Environment cache("COPPICE_CACHE_DIR", folder.string()), bound("COPPICE_CACHE_MAX_MB", max_mb);
    std::string reason;
    const auto device = test_device(GetParam(), reason);
    work(device);
    device->kernels().wait_compiled();
    const jit::KernelCache::Stats stats = device->kernels().disk_cache().stats();
    return {stats.hits, stats.misses};
  }
  // One launch over leaves of `n` cells; it compiles one kernel of its own and those of the tree's lists.
  static auto write_and_sum(int n, bool other_configuration = false) {
    return [=](const IntrusivePtr<Device>& device) {
      CodegenOptions options = codegen_options();
      options.checks ^= other_configuration;
      Program program(device, options);
      Tree tree(device);
      Node leaf = tree.root().pointer({16}).dense({n});
      Field<int> x = leaf.place<int>("x");
      program.launch(write_every1, range(16), x, n, 3);
      uint64_t sum = 0;
      run_on(program, sum1, over(leaf), x, inout(sum));
      EXPECT_EQ(sum, 48u);
    };
  }

  std::filesystem::path folder;
};

TEST_P(KernelsOnDisk, C66_TheSameTreeIsFoundAndAnotherTreeOrConfigurationIsNot) {
  const auto [hits, compiled] = on_fresh_device(write_and_sum(4));
  EXPECT_EQ(hits, 0u);
  EXPECT_GE(compiled, 3u);
  EXPECT_EQ(on_fresh_device(write_and_sum(4)), std::pair(compiled, uint64_t{0})) << "the same again";
  // The kernels of the lists take any tree; the two that are specialized for it are new.
  EXPECT_EQ(on_fresh_device(write_and_sum(5)), std::pair(compiled - 2, uint64_t{2})) << "another extent";
  EXPECT_EQ(on_fresh_device(write_and_sum(4, true)), std::pair(compiled - 2, uint64_t{2}))
      << "another configuration";
  EXPECT_EQ(on_fresh_device(write_and_sum(4)), std::pair(compiled, uint64_t{0})) << "nothing was replaced";
}

// The test of KernelCache (tests/gpu/kernel_cache_test.cc) says what goes when the folder is full; here,
// programs work on.
TEST_P(KernelsOnDisk, C66_NothingIsKeptWithoutRoom) {
  const auto [hits, compiled] = on_fresh_device(write_and_sum(4), "0");
  EXPECT_EQ(hits, 0u);
  EXPECT_EQ(on_fresh_device(write_and_sum(4), "0").first, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(on_fresh_device(write_and_sum(4)), std::pair(uint64_t{0}, compiled));
  EXPECT_EQ(on_fresh_device(write_and_sum(4)), std::pair(compiled, uint64_t{0}));
}

TEST_P(KernelsOnDisk, C67_AnotherProcessLoadsKeptKernelsAndGetsEqualValues) {
  const std::string command = fmt::format("COPPICE_LOG=off COPPICE_CACHE_DIR={} {}/kept_kernels_program {}",
                                          folder.string(), program_folder().string(), GetParam());
  const std::string values = "values 7 7 0 0 7 7 9 0 0 11 9 9 16 5; ";
  const Watched first = watch(command), second = watch(command);
  ASSERT_EQ(first.exit_code, 0) << first.output;
  ASSERT_EQ(second.exit_code, 0) << second.output;
  EXPECT_EQ(first.output.substr(0, values.size()), values);
  EXPECT_EQ(second.output.substr(0, values.size()), values);
  EXPECT_TRUE(first.has(" compiled, 0 from the cache")) << first.output;
  EXPECT_TRUE(second.has("; 0 compiled, ")) << second.output;
  // This process finds them, too.
  const auto [hits, compiled] =
      on_fresh_device([](const IntrusivePtr<Device>& device) { values_of_kept_kernels(device); });
  EXPECT_EQ(compiled, 0u);
  EXPECT_TRUE(second.has(fmt::format("; 0 compiled, {} from the cache", hits))) << second.output;
}

INSTANTIATE_TEST_SUITE_P(Sparse, KernelsOnDisk, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
