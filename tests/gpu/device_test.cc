// gpu/device.h: which devices there are, by name.
#include "gpu/device.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace coppice {
namespace {

TEST(Device, NamesTheCpuAndItsThreads) {
  auto device = Device::cpu(3);
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_EQ(device->threads(), 3);
  EXPECT_EQ(device->description().rfind("3 threads, ", 0), 0u) << device->description();
  EXPECT_GE(Device::cpu()->threads(), 1);
}

TEST(Device, RefusesANameItDoesNotKnow) {
  try {
    Device::named("opencl");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_STREQ(e.what(), "device 'opencl' is not known; expected cpu, cuda or auto");
  }
  EXPECT_EQ(Device::named("cpu")->name(), "cpu");
}

}  // namespace
}  // namespace coppice
