// gpu/device.h: which devices there are, by name.
#include "gpu/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "core/error.h"
#include "gpu/simt/machine.h"

namespace coppice {
namespace {

TEST(Device, NamesTheCpuAndItsThreads) {
  auto device = Device::cpu(3);
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_EQ(device->threads(), 3);
  EXPECT_EQ(device->description().rfind("3 threads, ", 0), 0u) << device->description();
  EXPECT_GE(Device::cpu()->threads(), 1);
}

TEST(Device, RefusesNumbersOfThreadsThatNoMachineHas) {
  for (const int threads : {-1, std::numeric_limits<int>::min(), 4097, 100000}) {
    SCOPED_TRACE(threads);
    for (const bool deterministic : {false, true}) {
      try {
        Device::cpu({.threads = threads, .deterministic = deterministic});
        ADD_FAILURE();
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
        EXPECT_EQ(e.what(), "Device::cpu: " + std::to_string(threads) +
                                " threads; 1 to 4096 are possible, and 0 for all cores");
      }
    }
  }
}

TEST(Device, RefusesANameItDoesNotKnow) {
  try {
    Device::named("opencl");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_STREQ(e.what(), "device 'opencl' is not known; expected cpu, cuda, simt or auto");
  }
  EXPECT_EQ(Device::named("cpu")->name(), "cpu");
}

TEST(Device, NamesTheEmulatedGpuAndItsSeed) {
  EXPECT_EQ(Device::simt()->name(), "simt");
  EXPECT_EQ(Device::simt()->description(), "64 threads per block, 2 multiprocessors, seed 1");
  auto device = Device::simt({.seed = 7, .threads_per_block = 32, .multiprocessors = 3});
  EXPECT_EQ(device->description(), "32 threads per block, 3 multiprocessors, seed 7");
  EXPECT_EQ(device->threads(), 32 * 3 * 2);
}

TEST(Device, TakesTheEmulatedGpusSeedFromTheEnvironment) {
  ASSERT_EQ(setenv("COPPICE_SIMT_SEED", "18446744073709551615", 1), 0);
  EXPECT_EQ(Device::named("simt")->description(),
            "64 threads per block, 2 multiprocessors, seed 18446744073709551615");
  for (const std::string wrong : {"", "seven", "-1", "1.5", " 1", "18446744073709551616"}) {
    SCOPED_TRACE("'" + wrong + "'");
    setenv("COPPICE_SIMT_SEED", wrong.c_str(), 1);
    try {
      Device::named("simt");
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_EQ(e.what(), "COPPICE_SIMT_SEED: '" + wrong +
                              "' is not a seed; expected a number from 0 to 18446744073709551615");
    }
  }
  unsetenv("COPPICE_SIMT_SEED");
}

TEST(Device, OnlyTheEmulatedGpuChangesHowKernelsAreCompiled) {
  EXPECT_EQ(Device::cpu(1)->codegen({.checks = true}), (CodegenOptions{.checks = true}));
  EXPECT_EQ(Device::simt()->codegen({.checks = true}), (CodegenOptions{.checks = true, .simt = true}));
}

}  // namespace
}  // namespace coppice
