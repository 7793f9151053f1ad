// Running a function allocates nothing per step. It counts in place of operator new, and of malloc() for what
// is large.
#include <gtest/gtest.h>

#include <cstdlib>

#include "function.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/function.h"
#include "tests/core/count_allocations.h"
#include "tests/sparse/staging.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_LARGE_ALLOCATIONS 1
namespace {
constexpr size_t kLargeBytes = size_t{16} << 10;
std::atomic<int64_t> large_allocations{0};
}  // namespace
extern "C" void* __libc_malloc(size_t bytes);
extern "C" void* malloc(size_t bytes) {
  if (bytes >= kLargeBytes) large_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
#endif

namespace coppice {
namespace {

int64_t count_allocations(const Function& f, int times) {
  const int64_t before = allocations.load();
  const AsyncValueRef<Chain> done = f.run(times);
  wait(done);
  EXPECT_FALSE(done.is_error());
  return allocations.load() - before;
}

TEST(FunctionMemory, NothingIsAllocatedPerStep) {
  const auto device = Device::cpu(1);
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({64}).dense({16});
  Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  finish(leaf.activate({{0}, {100}, {500}}));
  const auto words = device->reserve(64, 64);
  Slot<int> value(device, 3);
  const Function f = trace(device, [&] {
    program.launch(set_to, over(leaf), x, value);
    program.launch(add_cells, over(leaf), x, y);
    repeat(3, [&] { program.launch(add_one, range(1), words->as<uint32_t>()); });
    program.launch(copy_cells, over(leaf), y, x);
  });
  for (int i = 0; i < 3; ++i) count_allocations(f, 20);  // first uses of pools and lists
  if (allocations.load() == 0) GTEST_SKIP() << "builds with sanitizers have an operator new of their own";
  // A run itself takes from pools, which ask for more now and then.
  EXPECT_NEAR(count_allocations(f, 1000), count_allocations(f, 10), 3) << "for 990 steps of 6 launches";
}

#ifdef COUNTS_LARGE_ALLOCATIONS
// Seen to fail: each sort took as much as it sorts from the heap.
TEST(FunctionMemory, ScratchOfPrimitivesIsKeptByTheStream) {
  const auto device = Device::cpu(1);
  constexpr int64_t kItems = 20'000;
  const BufferRef keys = device->reserve(kItems * 8, kItems * 8),
                  out = device->reserve(kItems * 4, kItems * 4);
  const auto sort_twice = [&] {
    const BufferRef places = temporary(*device, kItems * 4);
    fill(*device, places, 1, 0, kItems * 4);
    sort_by_key<uint32_t>(*device, keys, places, kItems);
    exclusive_scan(*device, places, places, kItems);
    sort_by_key<uint64_t>(*device, keys, places, kItems);
    copy(*device, out, 0, places, 0, kItems * 4);
  };
  const Function f = trace(device, sort_twice), g = trace(device, sort_twice);
  const int64_t before = large_allocations.load();
  count_allocations(f, 1);
  EXPECT_GT(large_allocations.load(), before) << "the largest call's";
  const int64_t with_scratch = large_allocations.load();
  count_allocations(f, 20), count_allocations(g, 20);
  EXPECT_EQ(large_allocations.load(), with_scratch);
}
#endif

}  // namespace
}  // namespace coppice
