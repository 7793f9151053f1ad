// gpu/buffer.h on the cpu device: memory grows in place, is zero at first, and goes back to the system.
#include "gpu/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "gpu/device.h"

namespace coppice {
namespace {

class BufferTest : public testing::Test {
 protected:
  IntrusivePtr<Device> device = Device::cpu(1);

  static bool all_zero(const std::byte* from, const std::byte* to) {
    return std::all_of(from, to, [](std::byte b) { return b == std::byte{0}; });
  }
};

TEST_F(BufferTest, GrowsInPlaceAndKeepsItsContents) {
  auto buffer = device->reserve(size_t{1} << 30, 100);
  std::byte* const address = buffer->data();
  std::memset(address, 0x5a, 100);
  for (size_t bytes : {4096u, 4097u, 100000u, 5000000u}) {
    buffer->grow(bytes);
    ASSERT_EQ(buffer->data(), address);
    ASSERT_EQ(buffer->size_bytes(), bytes);
    ASSERT_TRUE(all_zero(address + 100, address + bytes)) << bytes;
  }
  EXPECT_TRUE(std::all_of(address, address + 100, [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST_F(BufferTest, NeverShrinks) {
  auto buffer = device->reserve(10000, 8000);
  buffer->grow(10);
  EXPECT_EQ(buffer->size_bytes(), 8000u);
  buffer->data()[7999] = std::byte{1};
}

TEST_F(BufferTest, ReservesAtLeastWhatItStartsWith) {
  auto buffer = device->reserve(10, 100000);
  EXPECT_GE(buffer->reserved_bytes(), 100000u);
  EXPECT_EQ(buffer->size_bytes(), 100000u);
  EXPECT_GE(device->reserve(0, 0)->reserved_bytes(), 1u);
}

TEST_F(BufferTest, RefusesToGrowBeyondItsReservation) {
  auto buffer = device->reserve(4096, 0);
  try {
    buffer->grow(4097);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
    EXPECT_STREQ(e.what(), "a buffer of at most 4096 bytes cannot grow to 4097");
  }
  buffer->grow(4096);
  buffer->data()[4095] = std::byte{1};
}

TEST_F(BufferTest, StartsAgainFromZerosAfterRelease) {
  auto buffer = device->reserve(1 << 20, 1 << 20);
  std::byte* const address = buffer->data();
  std::memset(address, 1, 1 << 20);
  buffer->release();
  EXPECT_EQ(buffer->size_bytes(), 0u);
  buffer->grow(1 << 20);
  EXPECT_EQ(buffer->data(), address);
  EXPECT_TRUE(all_zero(address, address + (1 << 20)));
}

TEST_F(BufferTest, SaysWhatItCannotReserve) {
  try {
    device->reserve(size_t{1} << 62, 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
    EXPECT_STREQ(e.what(), "cannot reserve 4611686018427387904 bytes of memory: Cannot allocate memory");
  }
}

using BufferDeathTest = BufferTest;
TEST_F(BufferDeathTest, TouchingWhatIsNotCommittedFaults) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto buffer = device->reserve(1 << 20, 4096);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(buffer->data() + 8192) = 1, "");
}

}  // namespace
}  // namespace coppice
