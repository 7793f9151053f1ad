// Running a function allocates nothing per step. It counts in place of operator new.
#include <gtest/gtest.h>

#include "function.kernels.h"
#include "sparse/function.h"
#include "tests/core/count_allocations.h"
#include "tests/sparse/staging.h"

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

}  // namespace
}  // namespace coppice
