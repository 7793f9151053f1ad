// Real kernels all the way to the driver: bitcode, PTX, a module, a launch with its block;
// and what the launches do, as far as the host's side decides it, on the fake driver
// (fake_gpu.h). Nothing here runs on a GPU.
//
// Every case runs with several seeds, which choose when and in what order the fake runs what streams allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <vector>

#include "heat.kernels.h"
#include "jit.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/fake_gpu.h"
#include "tests/sparse/kernel_store_util.h"
#include "tests/sparse/staging.h"

namespace coppice {
namespace {

using fake::FakeGpu;

// The PTX that was handed to the driver for a kernel.
std::vector<std::string> ptx_of(const FakeGpu& gpu, const std::string& kernel) {
  std::vector<std::string> found;
  for (const std::string& text : gpu.driver.loaded_ptx()) {
    if (text.find(".visible .entry " + kernel + "(") != text.npos) found.push_back(text);
  }
  return found;
}
fake::KernelLaunch last_launch(const FakeGpu& gpu, const std::string& kernel) {
  const auto launches = gpu.driver.launches();
  const auto found = std::find_if(launches.rbegin(), launches.rend(),
                                  [&](const fake::KernelLaunch& launch) { return launch.name == kernel; });
  return found == launches.rend() ? fake::KernelLaunch{} : *found;
}

class CudaKernels : public testing::TestWithParam<uint64_t> {
 protected:
  uint64_t seed() const { return GetParam(); }
};

// Seen to fail with one item too few in the block.
TEST_P(CudaKernels, OverARangeGetTheirItemsAndArguments) {
  constexpr int kItems = 1000;
  FakeGpu gpu({.seed = seed(), .sm = 120});
  Program program(gpu.device);
  std::vector<int> out(kItems, -1);
  run_on(program, write_index, range(10, 10 + kItems - 10), out);
  std::vector<int> expected(kItems, -1);
  std::iota(expected.begin() + 10, expected.end(), 10);
  EXPECT_EQ(out, expected);

  const fake::KernelLaunch launch = last_launch(gpu, "jit_write_index");
  EXPECT_EQ(launch.name, "jit_write_index");
  EXPECT_EQ(launch.threads, kGpuThreadsPerBlock);
  EXPECT_EQ(launch.blocks, (kItems - 10 + kGpuThreadsPerBlock - 1) / kGpuThreadsPerBlock);
  EXPECT_EQ(launch.shared_bytes, 0u);
  const LaunchBlock block = gpu.blocks.last("jit_write_index");
  EXPECT_EQ(block.version, kLaunchBlockVersion);
  EXPECT_EQ(block.flags, kThreadItems);
  EXPECT_EQ(block.loop_begin, 10);
  EXPECT_EQ(block.item_count, uint64_t{kItems - 10});
  EXPECT_EQ(block.count, nullptr);
  EXPECT_EQ(block.trees[0], nullptr);
  EXPECT_EQ(block.context, &gpu.device->context());
}

// Seen to fail with PTX for sm_75 whatever the GPU.
TEST_P(CudaKernels, AreHandedToTheDriverForItsGpu) {
  const std::pair<int, const char*> targets[] = {{75, "sm_75"}, {86, "sm_86"}, {90, "sm_90"}, {120, "sm_90"}};
  for (const auto& [sm, target] : targets) {
    FakeGpu gpu({.seed = seed(), .sm = sm});
    Program program(gpu.device);
    std::vector<int> out(3);
    run_on(program, write_index, range(3), out);
    run_on(program, write_index, range(3), out);
    const std::vector<std::string> texts = ptx_of(gpu, "jit_write_index");
    ASSERT_EQ(texts.size(), 1u) << "one module, however often it is launched";
    EXPECT_NE(texts[0].find(fmt::format("\n.target {}\n", target)), std::string::npos)
        << texts[0].substr(0, 300);
  }
}

// Lists are made on the device: the loop's number of items is there, and nobody on the host may know it.
TEST_P(CudaKernels, OverANodeGetItsListAndItsTree) {
  FakeGpu gpu({.seed = seed()});
  Program program(gpu.device);
  Tree tree(gpu.device);
  Node leaf = tree.root().pointer({8, 8}).dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords, out(40);
  for (int i = 0; i < 40; ++i) coords.insert(coords.end(), {i % 7 * 4 + i % 4, i / 7 * 4 + i % 3});
  run_on(program, grow_coords2, range(40), x, coords, 5);
  run_on(program, read_coords2, range(40), x, coords, out);
  EXPECT_EQ(out, std::vector<int>(40, 5));
  run_on(program, set_cells2, over(leaf), x);
  run_on(program, read_coords2, range(40), x, coords, out);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], coords[2 * i] * 1000 + coords[2 * i + 1]) << i;

  const LaunchBlock block = gpu.blocks.last("heat_set_cells2");
  EXPECT_EQ(block.flags, 0u) << "an item belongs to a thread block";
  EXPECT_NE(block.elements, nullptr);
  EXPECT_NE(block.count, nullptr);
  EXPECT_NE(block.trees[0], nullptr);
  EXPECT_EQ(block.trees[1], nullptr);
  const fake::KernelLaunch launch = last_launch(gpu, "heat_set_cells2");
  EXPECT_EQ(launch.threads, kGpuThreadsPerBlock);
  EXPECT_GE(launch.blocks, 1u);
}

// Values of a shell of leaves, after some steps of heat.
std::vector<float> heat_on(const IntrusivePtr<Device>& device) {
  constexpr int n = 12;
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({4, 4, 4}).dense({4, 4, 4});
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
  program.launch(grow_shell, range(n * n * n), now, Shell{{6, 6, 6}, 4, 1}, n);
  for (int step = 0; step < 2; ++step) {
    program.launch(diffuse, over(leaf), Heat{now, next}, 0.1f);
    program.launch(diffuse, over(leaf), Heat{next, now}, 0.1f);
  }
  program.wait();
  std::vector<float> values = wait_read(now, {0, 0, 0}, {16, 16, 16});
  values.push_back(static_cast<float>(leaf.wait_num_active_blocks()));
  return values;
}

// Seen to fail with launches that ask for no shared memory.
TEST_P(CudaKernels, GiveWhatTheyGiveOnTheCpuDevice) {
  const std::vector<float> expected = heat_on(Device::cpu(1));
  ASSERT_GT(std::set<float>(expected.begin(), expected.end()).size(), 100u) << "the scene is too dull";
  FakeGpu gpu({.seed = seed()});
  const std::vector<float> values = heat_on(gpu.device);
  ASSERT_EQ(values.size(), expected.size());
  EXPECT_EQ(std::memcmp(values.data(), expected.data(), sizeof(float) * values.size()), 0)
      << "seed " << seed();
  EXPECT_EQ(ptx_of(gpu, "heat_diffuse").size(), 2u) << "one for each pair of fields";
  const fake::KernelLaunch launch = last_launch(gpu, "heat_diffuse");
  EXPECT_GE(launch.shared_bytes, 6 * 6 * 6 * sizeof(float)) << "a leaf and its halo";
  EXPECT_NE(gpu.blocks.last("heat_diffuse").neighbours, nullptr);
}

TEST_P(CudaKernels, ThatTheDriverRefusesShowTheAssemblersLine) {
  std::string folder = (std::filesystem::temp_directory_path() / "coppice_cuda_kernels_XXXXXX").string();
  const Environment cache("COPPICE_CACHE_DIR",
                          mkdtemp(folder.data()));  // what is kept would be compiled again
  FakeGpu gpu({.seed = seed()});
  Program program(gpu.device);
  gpu.driver.refuse_ptx(fake::Result::kInvalidPtx,
                        "ptxas application ptx input, line 12; error   : Unknown symbol 'foo'\n"
                        "ptxas fatal   : Ptx assembly aborted due to errors\n");
  std::vector<int> out(3);
  const auto done = launch_and_wait(program, write_index, range(3), out);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kCompile);
  EXPECT_EQ(
      done.error().message(),
      "kernel jit.write_index: the driver refuses its PTX: ptxas application ptx input, line 12; error   : "
      "Unknown symbol 'foo'");
  gpu.device->default_stream().clear_error();
  run_on(program, add_one, range(3), out);
  EXPECT_EQ(out, (std::vector<int>{1, 1, 1})) << "other kernels run";
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaKernels, testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace coppice
