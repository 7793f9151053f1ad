// Memory of the emulated GPU (gpu/simt/address.h): the host cannot touch it, kernels touch nothing else.
#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "gpu/host_access.h"
#include "gpu/simt/machine.h"
#include "gpu/simt/symbols.h"
#include "gpu/stream_primitives.h"

namespace coppice {
namespace {

// Seen to fail when buffers and the context lay at the host's own addresses.
TEST(SimtMemoryDeathTest, FaultsWhenTheHostTouchesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto device = Device::simt();
  auto buffer = device->reserve(4096, 4096);
  EXPECT_DEATH(*buffer->as<volatile int>() = 1, "");
  EXPECT_DEATH(static_cast<void>(*buffer->as<volatile int>()), "");
  EXPECT_DEATH(device->default_stream().enqueue("touch", [&](InStream&) { *buffer->as<volatile int>() = 1; });
               wait(device->default_stream().barrier()), "");
  volatile const uint32_t* status = &device->context().status;
  EXPECT_DEATH(static_cast<void>(*status), "");
}

TEST(SimtMemory, IsReachedByCopiesFillsAndPrimitives) {
  auto device = Device::simt();
  Stream& stream = device->default_stream();
  auto a = wait_device_copy(*device, std::vector<uint32_t>{3, 1, 2, 9}), b = device->reserve(16, 16);
  EXPECT_EQ(a->size_bytes(), 16u);
  std::vector<uint32_t> got(4), order;
  stream.fill(a->as<uint32_t>() + 3, 0, 4);
  stream.copy(b->data(), a->data(), 16);
  stream.copy(got.data(), b->data(), 16);
  uint32_t second = 0;
  wait(stream.enqueue("look", [&](InStream& s) {
    write_value(s, a->as<uint32_t>() + 3, 4);
    primitives::sort_by_key(s, a->as<uint32_t>(), b->as<uint32_t>(), 4);
    order = wait_read(s, b->as<uint32_t>(), 4);
    second = wait_read(s, a->as<uint32_t>() + 1);
  }));
  EXPECT_EQ(got, (std::vector<uint32_t>{3, 1, 2, 0}));
  EXPECT_EQ(second, 2u);
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 2, 3, 0}));
  device->wait_copy(got.data(), a->data(), 16);
  EXPECT_EQ(got, (std::vector<uint32_t>{1, 2, 3, 4}));
}

TEST(SimtMemory, OfABufferKeepsItsAddressAsItGrowsAndReadsAsZeroWhereItWasDropped) {
  auto device = Device::simt();
  auto buffer = device->reserve(1 << 20, 4096);
  std::byte* const address = buffer->data();
  const uint32_t seven = 7;
  uint32_t got = 0;
  buffer->grow(1 << 19);
  EXPECT_EQ(buffer->data(), address);
  EXPECT_GE(buffer->size_bytes(), size_t{1} << 19);
  device->wait_copy(address + 8192, &seven, 4);
  device->wait_copy(&got, address + 8192, 4);
  EXPECT_EQ(got, 7u);
  buffer->discard(8192, 4096);
  device->wait_copy(&got, address + 8192, 4);
  EXPECT_EQ(got, 0u);
  buffer->shrink(4096);
  EXPECT_EQ(buffer->size_bytes(), 4096u);
}

// ---- what kernels may touch

uint32_t outside = 5;
const uint32_t constants[] = {6, 7};

// trees[0] is what lane 3 touches, as `kAccess` says.
enum { kLoad, kStore, kAtomic, kAcquire, kRelease, kExchange, kCompare, kCopy, kFill };
template <int kAccess>
void touch(const LaunchBlock* block, uint64_t, uint64_t) {
  static const CoppiceSimtConstant all[] = {{constants, sizeof constants}};
  coppice_simt_constants(all, 1);
  if (coppice_simt_lane() != 3) return;
  auto* const at = static_cast<uint32_t*>(block->trees[0]);
  uint32_t own = 1;
  if (kAccess == kLoad) coppice_simt_load(at, &own, 4);
  if (kAccess == kStore) coppice_simt_store(at, &own, 4);
  if (kAccess == kAtomic)
    __atomic_fetch_add(static_cast<uint32_t*>(coppice_simt_atomic(at, 4)), 1, __ATOMIC_RELAXED);
  if (kAccess == kAcquire) coppice_simt_load_acquire_u32(at);
  if (kAccess == kRelease) coppice_simt_store_release_u32(at, 1);
  if (kAccess == kExchange) coppice_simt_exchange_u32(at, 1);
  if (kAccess == kCompare) coppice_simt_compare_exchange_u32(at, 5, 1);
  if (kAccess == kCopy) coppice_simt_copy(&own, at, 4);
  if (kAccess == kFill) coppice_simt_fill(at, 0, 4);
}

std::string error_of(KernelEntry entry, const void* at, LaunchBlock block = {}) {
  simt::Machine machine({.seed = 9, .own_memory = true});
  block.trees[0] = const_cast<void*>(at);
  try {
    machine.run("test.touch", block, entry, 64, 64);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Seen to fail for each access when it did not ask Grid::reach().
TEST(SimtMemory, OfTheHostIsAnErrorThatNamesKernelSeedAndAddress) {
  const std::string error = error_of(touch<kLoad>, &outside);
  char address[32];
  std::snprintf(address, sizeof address, "%p", static_cast<void*>(&outside));
  EXPECT_EQ(
      error.find("test.touch: emulated GPU, seed 9, launch 1: block 0 warp 0 lane 3 touches host memory at " +
                 std::string(address) + ": a load of 4 bytes at entry"),
      0u)
      << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  for (KernelEntry entry : {touch<kStore>, touch<kAtomic>, touch<kAcquire>, touch<kRelease>, touch<kExchange>,
                            touch<kCompare>, touch<kCopy>, touch<kFill>}) {
    EXPECT_NE(error_of(entry, &outside).find("touches host memory"), std::string::npos);
  }
  EXPECT_EQ(outside, 5u);
  EXPECT_NE(error_of(touch<kLoad>, nullptr).find("touches host memory at 0x0:"), std::string::npos);
}

TEST(SimtMemory, OfTheDeviceAndConstantsOfTheCodeAreNone) {
  auto device = Device::simt();
  auto buffer = device->reserve(64, 64);
  for (KernelEntry entry : {touch<kLoad>, touch<kStore>, touch<kAtomic>, touch<kAcquire>, touch<kRelease>,
                            touch<kExchange>, touch<kCompare>, touch<kCopy>, touch<kFill>}) {
    EXPECT_EQ(error_of(entry, buffer->data()), "");
  }
  EXPECT_EQ(error_of(touch<kLoad>, constants + 1), "");
  EXPECT_NE(error_of(touch<kStore>, constants + 1), "") << "nobody writes constants";
  EXPECT_NE(error_of(touch<kLoad>, constants + 2), "") << "it ends before that";
}

}  // namespace
}  // namespace coppice
