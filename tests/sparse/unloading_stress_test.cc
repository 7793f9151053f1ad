// Machine code of trees that are gone is unloaded, whoever made and dropped them; and unloading while others
// ask.
#include <fmt/format.h>

#include <random>
#include <thread>

#include "conformance.kernels.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/jit_mappings.h"
#include "tests/sparse/kernel_store_util.h"
#include "tests/sparse/resident_memory.h"
#include "tests/sparse/staging.h"

namespace coppice {
namespace {

// Makes a tree of this many cells per leaf, runs a kernel that is specialized for it, and drops it.
void run_tree(const IntrusivePtr<Device>& device, Program& program, int cells) {
  Tree tree(device);
  Node leaf = tree.root().dense({cells});
  Field<int> x = leaf.place<int>("x");
  program.launch(write_every1, range(uint64_t(cells)), x, 1, 3);
  uint64_t sum = 0;
  run_on(program, sum1, over(leaf), x, inout(sum));
  ASSERT_EQ(sum, 3u * static_cast<uint64_t>(cells));
}

class UnloadingStressTest : public KernelStoreFolder {
 protected:
  UnloadingStressTest() : cache_("COPPICE_CACHE_DIR", folder.string()) {}

 private:
  const Environment cache_;
};

TEST_F(UnloadingStressTest, RebuiltTreesOfManyLayoutsTakeBoundedMemory) {
  const auto device = Device::cpu(1);
  Program program(device);
  // Two kernels per tree; the store keeps 128 that are not in use.
  for (int i = 1; i <= 100; ++i) run_tree(device, program, i);
  device->kernels().wait_compiled();
  const JitMappings before = jit_mappings();
  const uint64_t resident_before = resident_bytes();
  for (int i = 101; i <= 300; ++i) run_tree(device, program, i);
  device->kernels().wait_compiled();
  const JitMappings after = jit_mappings();
  EXPECT_LE(after.code_bytes, before.code_bytes + before.code_bytes / 4);
  EXPECT_LE(after.count, before.count + before.count / 4);
  if (!kFreedMemoryStays) {
    EXPECT_LT(resident_bytes(), resident_before + (4 << 20));
  }
  fmt::print(
      "after 100 and 300 trees: {} and {} KiB of machine code, {} and {} mappings, {} and {} KiB resident\n",
      before.code_bytes >> 10, after.code_bytes >> 10, before.count, after.count, resident_before >> 10,
      resident_bytes() >> 10);
}

// Trees of a first phase leave nothing behind in a second that launches the same kernel for ever.
TEST_F(UnloadingStressTest, ATreeThatStaysSeesTheOthersUnloaded) {
  const auto device = Device::cpu(1);
  Program program(device);
  {
    std::vector<std::unique_ptr<Tree>> trees;
    std::vector<uint64_t> sums(100);
    for (int i = 1; i <= 100; ++i) {
      trees.push_back(std::make_unique<Tree>(device));
      Node leaf = trees.back()->root().dense({i});
      Field<int> x = leaf.place<int>("x");
      program.launch(write_every1, range(uint64_t(i)), x, 1, 3);
      run_on(program, sum1, over(leaf), x, inout(sums[size_t(i - 1)]));
    }
    device->kernels().wait_compiled();
  }
  const JitMappings before = jit_mappings();
  Tree tree(device);
  Node leaf = tree.root().dense({7});
  Field<int> x = leaf.place<int>("x");
  for (int i = 0; i < 1000; ++i) program.launch(write_every1, range(7), x, 1, 3);
  program.wait();
  device->kernels().wait_compiled();
  EXPECT_LT(jit_mappings().code_bytes, before.code_bytes * 3 / 4);
}

TEST_F(UnloadingStressTest, ATreeThatIsRebuiltEveryStepAsksTheDiskOnce) {
  const auto device = Device::cpu(1);
  Program program(device);
  run_tree(device, program, 16);
  device->kernels().wait_compiled();
  const jit::KernelCache::Stats before = device->kernels().disk_cache().stats();
  for (int i = 0; i < 500; ++i) run_tree(device, program, 16);
  const jit::KernelCache::Stats after = device->kernels().disk_cache().stats();
  EXPECT_EQ(after.hits + after.misses, before.hits + before.misses);
}

// Threads that ask for, run and drop kernels of a store that keeps none that is not in use.
TEST_F(UnloadingStressTest, CodeIsNeverUnloadedUnderItsUser) {
  for (const size_t max_unused : {size_t{0}, size_t{2}}) {
    KernelStore::Options o = options();
    o.threads = 2;
    o.max_unused = max_unused;
    KernelStore store(o);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&store, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 300; ++i) {
          const uint32_t layout = random() % 6;
          jit::SpecializeRequest request = jit_request("add_one");
          request.constants = {{"coppice_loop", std::as_bytes(std::span(&layout, 1))}};
          auto code = store.get(request);
          wait(code);
          ASSERT_FALSE(code.is_error()) << code.error().what();
          const LoadedCodeRef kept = code.get();
          if (random() % 2 == 0) code.reset();
          if (random() % 4 == 0) store.release_unused();
          ASSERT_EQ(run_ints(jit::host_entry(*kept), {1, 2, 3}), (std::vector<int>{2, 3, 4}));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    store.wait_compiled();
  }
}

}  // namespace
}  // namespace coppice
