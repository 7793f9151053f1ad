// gpu/buffer.h on the cpu device: memory grows in place, is zero at first, and goes back to the system.
//
// Breaks that were seen to fail here: discard() without the last page's part, discard() that only writes
// zeros, shrink() that leaves what it gives back accessible; small buffers with mappings of their own, and
// large ones with what is left before and behind whole huge pages.
#include "gpu/buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/device.h"

namespace coppice {
namespace {

class BufferTest : public testing::Test {
 protected:
  IntrusivePtr<Device> device = Device::cpu(1);

  static size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    size_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  }
  static int64_t count_mappings() {
    std::ifstream file("/proc/self/maps");
    int64_t lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
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

TEST_F(BufferTest, DiscardedPartsReadZeroAndTheRestStays) {
  for (size_t reserved : {size_t{1} << 20, size_t{1} << 23}) {  // small pages, huge pages
    auto buffer = device->reserve(reserved, 1 << 20);
    std::byte* const data = buffer->data();
    // Within a page, across one border, whole pages, pages with ends, nothing.
    const std::pair<size_t, size_t> parts[] = {{10, 100},       {4000, 200}, {8192, 8192},
                                               {20001, 300000}, {500000, 0}, {(1 << 20) - 5000, 5000}};
    for (const auto& [offset, bytes] : parts) {
      std::memset(data, 0x5a, 1 << 20);
      buffer->discard(offset, bytes);
      const auto kept = [](std::byte b) { return b == std::byte{0x5a}; };
      ASSERT_TRUE(std::all_of(data, data + offset, kept)) << offset;
      ASSERT_TRUE(all_zero(data + offset, data + offset + bytes)) << offset;
      ASSERT_TRUE(std::all_of(data + offset + bytes, data + (1 << 20), kept)) << offset;
    }
    try {
      buffer->discard((1 << 20) - 10, 11);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
      EXPECT_STREQ(e.what(), "a buffer of 1048576 bytes has no 11 bytes from 1048566 on");
    }
  }
}

TEST_F(BufferTest, DiscardReturnsPagesToTheSystem) {
  constexpr size_t kBytes = size_t{64} << 20;
  auto buffer = device->reserve(kBytes, kBytes);
  std::memset(buffer->data(), 1, kBytes);
  const size_t full = resident_bytes();
  buffer->discard(100, kBytes - 200);
  EXPECT_LT(resident_bytes() + kBytes / 2, full);
}

TEST_F(BufferTest, SmallOnesTakeNoMappings) {
  std::vector<IntrusivePtr<Buffer>> buffers;
  buffers.push_back(device->reserve(64 << 10, 1));
  const int64_t before = count_mappings();
  for (int n = 0; n < 500; ++n) {
    buffers.push_back(device->reserve(1 + n * 131 % (64 << 10), 1));
    buffers.back()->data()[0] = std::byte{1};
    ASSERT_EQ(reinterpret_cast<uintptr_t>(buffers.back()->data()) % 256, 0u);
  }
  EXPECT_LT(count_mappings() - before, 50) << "those of the heap as a whole";
}

TEST_F(BufferTest, LargeOnesTakeTwoMappings) {
#ifdef COPPICE_SANITIZED_MEMORY
  GTEST_SKIP() << "sanitizers have mappings of their own, which change meanwhile";
#endif
  for (const size_t reserved : {size_t{1} << 20, size_t{16} << 20}) {
    std::vector<IntrusivePtr<Buffer>> buffers;
    const int64_t before = count_mappings();
    for (int n = 0; n < 100; ++n) buffers.push_back(device->reserve(reserved, 100));
    EXPECT_LE(count_mappings() - before, 205) << reserved;
  }
}

TEST_F(BufferTest, SmallOnesKeepWhatLargeOnesDo) {
  auto buffer = device->reserve(40000, 100);
  std::byte* const data = buffer->data();
  std::memset(data, 1, 100);
  buffer->grow(40000);
  EXPECT_EQ(buffer->data(), data);
  EXPECT_EQ(data[99], std::byte{1});
  EXPECT_TRUE(all_zero(data + 100, data + 40000));
  EXPECT_THROW(buffer->grow(40001), Error);
  std::memset(data, 1, 40000);
  buffer->discard(5, 39990);
  EXPECT_EQ(data[4], std::byte{1});
  EXPECT_TRUE(all_zero(data + 5, data + 39995));
  EXPECT_EQ(data[39995], std::byte{1});
  EXPECT_THROW(buffer->discard(39999, 2), Error);
  buffer->shrink(10);
  EXPECT_EQ(buffer->size_bytes(), 10u);
  EXPECT_EQ(data[4], std::byte{1});
  buffer->grow(40000);
  EXPECT_TRUE(all_zero(data + 10, data + 40000));
  buffer->release();
  EXPECT_EQ(buffer->size_bytes(), 0u);
  buffer->grow(40000);
  EXPECT_TRUE(all_zero(data, data + 40000));
}

TEST_F(BufferTest, ShrunkBuffersGrowAgainWithZeros) {
  for (size_t reserved : {size_t{1} << 20, size_t{1} << 24}) {
    auto buffer = device->reserve(reserved, 1 << 20);
    std::memset(buffer->data(), 1, 1 << 20);
    buffer->shrink(5000);
    EXPECT_EQ(buffer->size_bytes(), 5000u);
    buffer->shrink(6000);
    EXPECT_EQ(buffer->size_bytes(), 5000u) << "shrinking never grows";
    buffer->grow(1 << 20);
    EXPECT_FALSE(all_zero(buffer->data() + 4999, buffer->data() + 5000));
    EXPECT_TRUE(all_zero(buffer->data() + 5000, buffer->data() + (1 << 20)));
  }
}

TEST_F(BufferTest, SaysWhatItCannotReserve) {
  try {
    device->reserve(size_t{1} << 62, 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
    EXPECT_STREQ(e.what(), "cannot reserve 4611686018427387904 bytes of memory: Cannot allocate memory");
  }
  for (const auto& [reserved, initial] : {std::pair{SIZE_MAX, size_t{0}}, std::pair{size_t{1}, SIZE_MAX}}) {
    try {
      device->reserve(reserved, initial);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
      EXPECT_STREQ(
          e.what(),
          "device cpu: cannot reserve 18446744073709551615 bytes of memory; no machine has more than "
          "4611686018427387904");
    }
  }
}

using BufferDeathTest = BufferTest;
TEST_F(BufferDeathTest, TouchingWhatIsNotCommittedFaults) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto buffer = device->reserve(1 << 20, 4096);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(buffer->data() + 8192) = 1, "");
  auto shrunk = device->reserve(1 << 20, 1 << 20);
  shrunk->shrink(4096);
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(shrunk->data() + 8192) = 1, "");
}

}  // namespace
}  // namespace coppice
