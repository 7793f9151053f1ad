// gpu/cuda/cuda_buffer.h on the fake driver: growth in place by chunks, zeros, what goes
// back, and what must be waited for.
//
// Breaks that were seen to fail here are named at the cases.
#include "gpu/cuda/cuda_buffer.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

constexpr size_t kGranule = size_t{64} << 10, kChunk = cuda::CudaBuffer::kChunkGranules * kGranule;

class CudaBufferTest : public testing::Test {
 protected:
  FakeCuda fake;
  Device& device = *fake.device;
  Stream& stream = device.default_stream();

  // Everything in [from, to) is `value`.
  void expect_all(const Buffer& buffer, size_t from, size_t to, unsigned char value) {
    const auto bytes = wait_read(stream, buffer.as<unsigned char>() + from, to - from);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), value), static_cast<long>(to - from))
        << from << " " << to;
  }
};

// Break: wait_fill() left out of add_chunk(): the fake's memory is not zero.
TEST_F(CudaBufferTest, GrowsInPlaceWithZerosAndKeepsItsContents) {
  auto buffer = device.reserve(size_t{1} << 30, 100);
  std::byte* const address = buffer->data();
  stream.fill(address, 7, 100);
  for (const size_t bytes : {size_t{101}, kGranule, kGranule + 1, 3 * kChunk + 5}) {
    buffer->grow(bytes);
    ASSERT_EQ(buffer->data(), address);
    ASSERT_EQ(buffer->size_bytes(), bytes);
    expect_all(*buffer, 0, 100, 7);
    expect_all(*buffer, 100, bytes, 0);
  }
  buffer->grow(10);
  EXPECT_EQ(buffer->size_bytes(), 3 * kChunk + 5) << "growing never shrinks";
}

TEST_F(CudaBufferTest, MapsNoMoreThanItsGranules) {
  const size_t before = fake.driver.used_bytes();
  auto buffer = device.reserve(size_t{1} << 40, 0);
  EXPECT_EQ(fake.driver.used_bytes(), before) << "a reservation costs no memory";
  buffer->grow(1);
  EXPECT_EQ(fake.driver.used_bytes(), before + kGranule);
  buffer->grow(kChunk + 1);
  EXPECT_EQ(fake.driver.used_bytes(), before + kGranule + kChunk);
  buffer->release();
  EXPECT_EQ(fake.driver.used_bytes(), before);
}

TEST_F(CudaBufferTest, RefusesToGrowBeyondItsReservation) {
  auto buffer = device.reserve(kGranule + 1, 0);
  EXPECT_EQ(buffer->reserved_bytes(), 2 * kGranule);
  try {
    buffer->grow(2 * kGranule + 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
    EXPECT_STREQ(e.what(), "a buffer of at most 131072 bytes cannot grow to 131073");
  }
  buffer->grow(2 * kGranule);
}

// Break: the chunks of the failed call kept: used_bytes() is higher afterwards.
TEST_F(CudaBufferTest, SaysWhatIsFreeWhenThereIsNoMoreAndStaysAsItWas) {
  auto buffer = device.reserve(size_t{1} << 30, kGranule);
  stream.fill(buffer->data(), 9, kGranule);
  const size_t before = fake.driver.used_bytes();
  try {
    buffer->grow(size_t{100} << 20);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
    EXPECT_EQ(std::string(e.what()).find("device cuda: cannot allocate 1048576 bytes of Fake GPU's memory: "),
              0u)
        << e.what();
    EXPECT_NE(std::string(e.what()).find(" of 67108864 bytes are free"), std::string::npos) << e.what();
  }
  EXPECT_EQ(buffer->size_bytes(), kGranule);
  EXPECT_EQ(fake.driver.used_bytes(), before);
  expect_all(*buffer, 0, kGranule, 9);
  buffer->grow(2 * kChunk);
  expect_all(*buffer, kGranule, 2 * kChunk, 0);
}

TEST_F(CudaBufferTest, SaysWhatItCannotReserve) {
  try {
    device.reserve(size_t{1} << 62, 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
    EXPECT_EQ(
        std::string(e.what()).find("device cuda: cannot reserve 4611686018427387904 bytes of addresses: "),
        0u)
        << e.what();
  }
}

// Break: the fill of the kept part left out.
TEST_F(CudaBufferTest, ShrunkBuffersGiveChunksBackAndGrowAgainWithZeros) {
  auto buffer = device.reserve(size_t{1} << 30, 4 * kChunk);
  const size_t before = fake.driver.used_bytes();
  wait(stream.fill(buffer->data(), 1, 4 * kChunk));
  buffer->shrink(kChunk + 5000);
  EXPECT_EQ(buffer->size_bytes(), kChunk + 5000);
  EXPECT_EQ(fake.driver.used_bytes(), before - 2 * kChunk);
  buffer->shrink(kChunk + 6000);
  EXPECT_EQ(buffer->size_bytes(), kChunk + 5000) << "shrinking never grows";
  buffer->grow(4 * kChunk);
  expect_all(*buffer, 0, kChunk + 5000, 1);
  expect_all(*buffer, kChunk + 5000, 4 * kChunk, 0);
}

TEST_F(CudaBufferTest, StartsAgainFromZerosAfterRelease) {
  auto buffer = device.reserve(size_t{1} << 20, size_t{1} << 20);
  std::byte* const address = buffer->data();
  wait(stream.fill(address, 1, size_t{1} << 20));
  buffer->release();
  EXPECT_EQ(buffer->size_bytes(), 0u);
  buffer->grow(size_t{1} << 20);
  EXPECT_EQ(buffer->data(), address);
  expect_all(*buffer, 0, size_t{1} << 20, 0);
}

TEST_F(CudaBufferTest, DiscardedPartsReadZeroAndTheRestStays) {
  auto buffer = device.reserve(size_t{1} << 20, 100000);
  wait(stream.fill(buffer->data(), 1, 100000));
  buffer->discard(500, 0);
  buffer->discard(1000, 70000);
  expect_all(*buffer, 0, 1000, 1);
  expect_all(*buffer, 1000, 71000, 0);
  expect_all(*buffer, 71000, 100000, 1);
  try {
    buffer->discard(99990, 11);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
    EXPECT_STREQ(e.what(), "a buffer of 100000 bytes has no 11 bytes from 99990 on");
  }
}

// The fake runs issued work late, and reports memory that goes while work uses it. Breaks: a destructor that
// does not wait; Context::wait_idle() that does not, which discard(), shrink() and release() call.
TEST_F(CudaBufferTest, WaitsForIssuedWorkBeforeMemoryGoes) {
  fake.driver.set_kernel("test_use", [](const LaunchBlock& block, const KernelLaunch&) {
    std::memset(const_cast<void*>(block.elements), 3, 100);
  });
  for (int round = 0; round < 20; ++round) {
    auto buffer = device.reserve(size_t{1} << 30, 2 * kGranule);
    const auto issue = [&](InStream& s) {
      Launch launch = launch_of(fake.driver.table(), "test.use");
      launch.block.elements = buffer->data() + kGranule;
      s.run(launch);
    };
    stream.enqueue("test.discard", [&](InStream& s) { issue(s), buffer->discard(kGranule, 100); });
    expect_all(*buffer, kGranule, 2 * kGranule, 0);
    stream.enqueue("test.shrink",
                   [&](InStream& s) { issue(s), buffer->shrink(10), buffer->grow(2 * kGranule); });
    expect_all(*buffer, kGranule, 2 * kGranule, 0);
    stream.enqueue("test.release",
                   [&](InStream& s) { issue(s), buffer->release(), buffer->grow(2 * kGranule); });
    expect_all(*buffer, kGranule, 2 * kGranule, 0);
    EXPECT_EQ(error_of(stream.enqueue("test.drop", [&](InStream& s) { issue(s), buffer.reset(); })), "");
  }
}

TEST_F(CudaBufferTest, LeavesTheCallersContextAsItWas) {
  const auto other = reinterpret_cast<cuda::ContextHandle>(uint64_t{0x7777});
  fake.driver.table().ctx_set_current(other);
  auto buffer = device.reserve(size_t{1} << 20, 1000);
  buffer->shrink(0);
  buffer.reset();
  cuda::ContextHandle now = nullptr;
  fake.driver.table().ctx_get_current(&now);
  EXPECT_EQ(now, other);
  fake.driver.table().ctx_set_current(nullptr);
}

using CudaBufferDeathTest = CudaBufferTest;
TEST_F(CudaBufferDeathTest, TheHostCannotTouchDeviceMemory) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto buffer = device.reserve(4096, 4096);
  wait(stream.fill(buffer->data(), 1, 4096));
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(buffer->data()) = 1, "");
}

}  // namespace
}  // namespace coppice::fake
