// Functions on the cuda device, as its host's side gives them to the driver: on the fake one (fake_gpu.h),
// whose kernels run, and whose graphs run in any order that their edges allow. Nothing here runs on a GPU.
#include <gtest/gtest.h>

#include <vector>

#include "executor/text.h"
#include "function.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/function.h"
#include "sparse/tree.h"
#include "tests/sparse/fake_gpu.h"

namespace coppice {
namespace {

using fake::FakeGpu;

class CudaFunctions : public testing::TestWithParam<uint64_t> {
 protected:
  uint64_t seed() const { return GetParam(); }
};

// A step with primitives, copies and fills between launches that cannot fail is one graph, and the host has
// no other part in its replays.
TEST_P(CudaFunctions, AreOneGraphWithThePrimitivesBetweenTheirLaunches) {
  if (codegen_options().checks) GTEST_SKIP() << "launches with checks are given one by one";
  FakeGpu gpu({.seed = seed()});
  const auto keys = gpu.device->reserve(64, 64), order = gpu.device->reserve(64, 64);
  Program program(gpu.device);
  const Function f = trace(gpu.device, [&] {
    fill(*gpu.device, keys, 0, 0, 64);
    for (int i : {1, 5, 5}) program.launch(add_one, range(1), keys->as<uint32_t>() + i);
    copy(*gpu.device, order, 0, keys, 0, 64);
    sort_by_key<uint32_t>(*gpu.device, keys, order, 16);
    program.launch(add_one, range(1), order->as<uint32_t>() + 15);
  });
  wait(f.run());
  const int graphs = gpu.driver.calls("cuGraphLaunch"), launches = gpu.driver.calls("cuLaunchKernel"),
            waits = gpu.driver.calls("cuStreamSynchronize"), fills = gpu.driver.calls("cuMemsetD8Async");
  wait(f.run(3));
  EXPECT_EQ(gpu.driver.calls("cuGraphLaunch"), graphs + 3);
  EXPECT_EQ(gpu.driver.calls("cuLaunchKernel"), launches);
  EXPECT_EQ(gpu.driver.calls("cuMemsetD8Async"), fills);
  EXPECT_EQ(gpu.driver.calls("cuStreamSynchronize"), waits);
  std::vector<uint32_t> sorted(16), values(16);
  gpu.device->wait_copy(sorted.data(), keys->data(), 64);
  gpu.device->wait_copy(values.data(), order->data(), 64);
  EXPECT_EQ(std::vector<uint32_t>(sorted.begin() + 13, sorted.end()), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(std::vector<uint32_t>(values.begin() + 13, values.end()), (std::vector<uint32_t>{0, 1, 3}));
}

// Returns the order in which the kernels of a function's last run ran.
std::vector<std::string> kernels_of(const FakeGpu& gpu, size_t most) {
  std::vector<std::string> names;
  for (const fake::KernelLaunch& launch : gpu.driver.launches()) names.push_back(launch.name);
  return {names.end() - static_cast<ptrdiff_t>(most), names.end()};
}

// Launches that use nothing of each other are branches of the graph: any of them may be first. Break: parts
// that come behind the one before them.
TEST(CudaFunctionsInBranches, RunLaunchesSideBySideThatNothingOrders) {
  if (codegen_options().checks) GTEST_SKIP() << "launches with checks are given one by one";
  bool first_is_first = false, second_is_first = false;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    FakeGpu gpu({.seed = seed});
    const auto one = gpu.device->reserve(64, 64), other = gpu.device->reserve(64, 64);
    Program program(gpu.device);
    const Function f = trace(gpu.device, [&] {
      program.launch(add_one, range(1), one->as<uint32_t>());
      program.launch(subtract_one, range(1), other->as<uint32_t>());
      program.launch(draw_word, range(1), one->as<uint32_t>());
      copy(*gpu.device, one, 4, other, 0, 4);
    });
    wait(f.run());
    const std::vector<std::string> names = kernels_of(gpu, 3);
    first_is_first |= names[0] == "function_add_one";
    second_is_first |= names[0] == "function_subtract_one";
    EXPECT_NE(names[0], "function_draw_word") << "it changes what another one uses";
  }
  EXPECT_TRUE(first_is_first && second_is_first);
}

// A text may order what no use does. Seen to fail in 13 of 19 runs: edges came from uses alone.
TEST(CudaFunctionsInBranches, KeepTheOrderOfTheirTextsEvents) {
  for (uint64_t seed = 1; seed < 20; ++seed) {
    FakeGpu gpu({.seed = seed});
    const auto one = gpu.device->reserve(64, 64), other = gpu.device->reserve(64, 64);
    Program program(gpu.device);
    executor::Bindings bindings;
    bindings.add("one", program.bind(add_one, range(1), one->as<uint32_t>()));
    bindings.add("other", program.bind(subtract_one, range(1), other->as<uint32_t>()));
    const Function f = Function::load(gpu.device, executor::parse(R"(func @main(%begin: event) -> event {
  %a = sparse.launch $one (%begin)
  %both = stream.join(%a, %begin)
  %b = sparse.launch $other (%both)
  return %b
})"),
                                      bindings);
    wait(f.run());
    EXPECT_EQ(kernels_of(gpu, 2), (std::vector<std::string>{"function_add_one", "function_subtract_one"}));
  }
}

// The host's memory may be filled and copied beside launches: such a function is given one by one. Seen to
// fail: a failed check.
TEST(CudaFunctionsInBranches, MayFillTheHostsMemory) {
  auto host = Device::cpu(1)->reserve(size_t{1} << 20, 64);
  FakeGpu gpu;
  const auto words = gpu.device->reserve(64, 64);
  Program program(gpu.device);
  const Function f = trace(gpu.device, [&] {
    program.launch(add_one, range(1), words->as<uint32_t>());
    fill(*gpu.device, host, 7, 0, 64);
    copy(*gpu.device, words, 4, host, 0, 4);
  });
  for (int runs = 0; runs < 3; ++runs) {
    const auto done = f.run();
    wait(done);
    ASSERT_FALSE(done.is_error()) << done.error().what();
  }
  EXPECT_EQ(host->as<uint32_t>()[15], 0x07070707u);
  uint32_t copied = 0;
  gpu.device->wait_copy(&copied, words->data() + 4, sizeof copied);
  EXPECT_EQ(copied, 0x07070707u);
  EXPECT_EQ(gpu.driver.calls("cuGraphLaunch"), 0);
}

// Seen to fail: each recording had scratch memory of its own.
TEST(CudaFunctionsInBranches, ShareTheScratchMemoryOfTheirPrimitives) {
  if (codegen_options().checks) GTEST_SKIP() << "launches with checks are given one by one";
  FakeGpu gpu({.memory_bytes = size_t{256} << 20});
  constexpr int64_t kItems = 1 << 18;
  const auto keys = gpu.device->reserve(4 * kItems, 4 * kItems),
             order = gpu.device->reserve(4 * kItems, 4 * kItems);
  Program program(gpu.device);
  std::vector<Function> functions;
  const auto wait_used_after_another = [&] {
    const Function f = trace(gpu.device, [&] {
      program.launch(add_one, range(1), keys->as<uint32_t>());
      sort_by_key<uint32_t>(*gpu.device, keys, order, kItems);
    });
    wait(f.run());
    functions.push_back(f);
    return gpu.driver.used_bytes();
  };
  const size_t used = wait_used_after_another();
  EXPECT_EQ(wait_used_after_another(), used);
  EXPECT_EQ(wait_used_after_another(), used);
}

// Sorts of different arrays have the recording's scratch memory in common: the fake says where graphs let two
// of them run at once. Break: calls that only their buffers order.
TEST(CudaFunctionsInBranches, KeepPrimitivesOneBehindTheOther) {
  if (codegen_options().checks) GTEST_SKIP() << "launches with checks are given one by one";
  FakeGpu gpu;
  const auto one = gpu.device->reserve(64, 64), other = gpu.device->reserve(64, 64),
             places = gpu.device->reserve(64, 64), others = gpu.device->reserve(64, 64);
  Program program(gpu.device);
  const Function f = trace(gpu.device, [&] {
    program.launch(add_one, range(1), one->as<uint32_t>());
    program.launch(subtract_one, range(1), other->as<uint32_t>());
    sort_by_key<uint32_t>(*gpu.device, one, places, 16);
    sort_by_key<uint32_t>(*gpu.device, other, others, 16);
  });
  wait(f.run());
  EXPECT_EQ(gpu.driver.calls("cuGraphLaunch"), 1);
}

// One that may leave a status comes behind all before it, and before all behind it.
TEST(CudaFunctionsInBranches, KeepTheOrderAroundALaunchThatMayFail) {
  for (uint64_t seed = 1; seed < 10; ++seed) {
    FakeGpu gpu({.seed = seed});
    Program program(gpu.device);
    Tree tree(gpu.device);
    const Node leaf = tree.root().pointer({8}).dense({4});
    const auto x = leaf.place<int>("x");
    const auto one = gpu.device->reserve(64, 64), other = gpu.device->reserve(64, 64);
    const Function f = trace(gpu.device, [&] {
      program.launch(add_one, range(1), one->as<uint32_t>());
      program.launch(grow_at, range(1), x, 3);
      program.launch(subtract_one, range(1), other->as<uint32_t>());
    });
    for (int runs = 0; runs < 3; ++runs) wait(f.run());
    std::vector<std::string> names;
    for (const std::string& name : kernels_of(gpu, gpu.driver.launches().size())) {
      if (name.starts_with("function_") && !name.ends_with("_room")) names.push_back(name);
    }
    ASSERT_GE(names.size(), 9u);
    for (size_t i = names.size() - 6; i < names.size(); i += 3) {
      EXPECT_EQ(names[i], "function_add_one");
      EXPECT_EQ(names[i + 1], "function_grow_at");
      EXPECT_EQ(names[i + 2], "function_subtract_one");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaFunctions, testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace coppice
