// Random functions on a cuda device whose driver only records (fake_gpu.h), against the same given one by one
// on the cpu, and the other way round (random_functions.h): what the host issues, captures, reads back and
// grows around graphs, and around launches that it does not wait for.
#pragma once
#include "tests/sparse/fake_gpu.h"
#include "tests/sparse/random_functions.h"

namespace coppice::random_functions {

inline void run_seeds_on_the_fake_driver(uint64_t first, uint64_t last) {
  const auto cpu = Device::cpu(1);
  fake::FakeGpu gpu({.memory_bytes = size_t{4} << 30});
  for_each_group(first, last, [&](uint64_t begin, uint64_t end) {
    run_group(gpu.device, cpu, begin, end, codegen_options());
    run_group(cpu, gpu.device, begin, end, codegen_options());
  });
  EXPECT_GT(gpu.driver.calls("cuGraphLaunch"), 0);
}

inline constexpr uint64_t kSeedsOnTheFakeDriver = 100;

}  // namespace coppice::random_functions
