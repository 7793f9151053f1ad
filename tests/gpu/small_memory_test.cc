// gpu/cuda/small_memory.h on the fake driver: small buffers share blocks, take each other's
// memory and see only zeros of it.
//
// Breaks that were seen to fail here are named at the cases.
#include "gpu/cuda/small_memory.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/error.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

constexpr size_t kGranule = size_t{64} << 10;

class SmallBufferTest : public testing::Test {
 protected:
  FakeCuda fake;
  Device& device = *fake.device;
  Stream& stream = device.default_stream();

  // All of it is `value`.
  void expect_all(const Buffer& buffer, unsigned char value) {
    const auto bytes = wait_read(stream, buffer.as<unsigned char>(), buffer.size_bytes());
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), value), static_cast<long>(bytes.size()));
  }
  // The device's context is small, too.
  void expect_at_most(size_t blocks, size_t before) {
    EXPECT_LE(fake.driver.used_bytes(), before + blocks * kGranule);
  }
};

// Break: a granule for each.
TEST_F(SmallBufferTest, ManyShareAGranule) {
  const size_t before = fake.driver.used_bytes();
  std::vector<IntrusivePtr<Buffer>> buffers;
  for (unsigned char i = 0; i < 200; ++i) {
    buffers.push_back(device.reserve(300, 300));
    EXPECT_EQ(buffers.back()->reserved_bytes(), 512u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back()->data()) % 256, 0u);
    expect_all(*buffers.back(), 0);
    stream.fill(buffers.back()->data(), i, 300);
  }
  for (unsigned char i = 0; i < 200; ++i) expect_all(*buffers[i], i);
  expect_at_most(2, before);
}

// Break: wait_fill() left out of take().
TEST_F(SmallBufferTest, TakeWhatOthersGaveBackWithZeros) {
  const size_t before = fake.driver.used_bytes();
  std::mt19937 random(1);
  std::vector<IntrusivePtr<Buffer>> buffers(20);
  for (int round = 0; round < 500; ++round) {
    IntrusivePtr<Buffer>& buffer = buffers[random() % buffers.size()];
    buffer.reset();
    buffer = device.reserve(random() % 4096 + 1, 0);
    buffer->grow(buffer->reserved_bytes());
    expect_all(*buffer, 0);
    wait(stream.fill(buffer->data(), 0xEE, buffer->size_bytes()));
  }
  expect_at_most(6, before);  // of the five sizes up to 4 KiB, twenty each at most
}

// Break: the fill left out of wait_clear().
TEST_F(SmallBufferTest, GrowShrinkAndDiscardAsLargeOnes) {
  auto buffer = device.reserve(5000, 100);
  EXPECT_EQ(buffer->size_bytes(), 100u);
  EXPECT_EQ(buffer->reserved_bytes(), 8192u);
  std::byte* const address = buffer->data();
  buffer->grow(1000);
  wait(stream.fill(address, 1, 1000));
  buffer->grow(500);
  EXPECT_EQ(buffer->size_bytes(), 1000u) << "growing never shrinks";
  buffer->discard(10, 980);
  auto bytes = wait_read(stream, buffer->as<unsigned char>(), 1000);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 1), 20);
  wait(stream.fill(address, 1, 1000));
  buffer->shrink(2000);
  EXPECT_EQ(buffer->size_bytes(), 1000u) << "shrinking never grows";
  buffer->shrink(600);
  buffer->grow(1000);
  bytes = wait_read(stream, buffer->as<unsigned char>(), 1000);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 1), 600);
  buffer->release();
  EXPECT_EQ(buffer->size_bytes(), 0u);
  buffer->grow(8192);
  expect_all(*buffer, 0);
  EXPECT_EQ(buffer->data(), address);
  EXPECT_EQ(error_from([&] { buffer->grow(8193); }).message(),
            "a buffer of at most 8192 bytes cannot grow to 8193");
  EXPECT_EQ(error_from([&] { buffer->discard(8190, 3); }).message(),
            "a buffer of 8192 bytes has no 3 bytes from 8190 on");
}

// Break: a destructor, or wait_clear(), that does not wait: what was issued writes into what is someone
// else's.
TEST_F(SmallBufferTest, WaitForIssuedWorkBeforeTheirMemoryGoes) {
  fake.driver.set_kernel("test_use", [](const LaunchBlock& block, const KernelLaunch&) {
    std::memset(const_cast<void*>(block.elements), 3, 100);
  });
  for (int round = 0; round < 20; ++round) {
    auto buffer = device.reserve(1000, 1000);
    IntrusivePtr<Buffer> next;
    const auto issue = [&](InStream& s) {
      Launch launch = launch_of(fake.driver.table(), "test.use");
      launch.block.elements = buffer->data();
      s.run(launch);
    };
    stream.enqueue("test.discard", [&](InStream& s) { issue(s), buffer->discard(0, 100); });
    expect_all(*buffer, 0);
    stream.enqueue("test.shrink", [&](InStream& s) { issue(s), buffer->shrink(0), buffer->grow(1000); });
    expect_all(*buffer, 0);
    const auto gone = stream.enqueue("test.drop", [&](InStream& s) {
      issue(s), buffer.reset();
      next = device.reserve(1000, 1000);
    });
    EXPECT_EQ(error_of(gone), "");
    expect_all(*next, 0);
  }
}

TEST_F(SmallBufferTest, SayWhenThereIsNoMore) {
  std::vector<IntrusivePtr<Buffer>> buffers;
  const Error error = error_from([&] {
    for (;;) buffers.push_back(device.reserve(kGranule, kGranule));
  });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(error.message().find("device cuda: cannot allocate 65536 bytes of Fake GPU's memory: "), 0u);
  EXPECT_GT(buffers.size(), 1000u);
  buffers.pop_back();
  buffers.push_back(device.reserve(kGranule, kGranule));
}

}  // namespace
}  // namespace coppice::fake
