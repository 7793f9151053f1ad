// The cuda device says where its primitives cannot be run: without nvcc at build time, without a driver
// that is new enough, and when a call fails. Their results are compared in stream_primitives_test.cc.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "gpu/cuda/primitives.h"
#include "gpu/stream_primitives.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

TEST(CudaPrimitives, SayWhatTheyNeedWhereThereIsNoDriver) {
  if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr)
    GTEST_SKIP() << "this machine has an NVIDIA driver";
  const cuda::Primitives& primitives = cuda::cub_primitives();
  for (const auto kind :
       {PrimitiveCall::Kind::kSortByKey, PrimitiveCall::Kind::kSum, PrimitiveCall::Kind::kHistogram}) {
    size_t bytes = 0;
    unsigned char memory[64];
    const PrimitiveCall call{.kind = kind, .n = 10, .count = 2, .first = memory, .result = memory};
    unsigned answer = primitives.scratch_bytes(call, &bytes);
    if (answer == 0) answer = primitives.run(call, nullptr, memory, sizeof memory);
    ASSERT_NE(answer, 0u);
    const Error error = primitives.error(answer, "sorting");
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    const std::string text = error.message();
    const bool is_built = text.find("device cuda: sorting: built with CUDA ") == 0 &&
                          text.find(" or newer for it; there is none here") != text.npos;
    const bool is_not_built = text.find("device cuda: sorting: built without nvcc: ") == 0;
    EXPECT_NE(is_built, is_not_built) << text;
    EXPECT_EQ(text.find('\n'), text.npos);
  }
}

TEST(CudaPrimitives, AFailedCallIsOneErrorThatNamesIt) {
  FakeCuda fake;
  Stream& stream = fake.device->default_stream();
  auto buffer = fake.device->reserve(1000, 1000);
  for (const char* function : {"primitive_scratch", "run_primitive"}) {
    fake.driver.fail(function, Result::kInvalidValue);
    const auto done = stream.issue("test.sum", [&](InStream& s) {
      primitives::sum(s, buffer->as<uint32_t>(), 10, buffer->as<uint64_t>() + 10);
    });
    EXPECT_EQ(error_of(done), "device cuda: summing: answer 1 (CUDA_ERROR_1)");
    stream.clear_error();
    EXPECT_EQ(error_of(stream.barrier()), "");
  }
  fake.driver.fail("run_primitive", Result::kIllegalAddress);
  const auto lost = stream.issue("test.sum", [&](InStream& s) {
    primitives::sum(s, buffer->as<uint32_t>(), 10, buffer->as<uint64_t>() + 10);
  });
  EXPECT_EQ(error_of(lost), "device cuda: summing: answer 700 (CUDA_ERROR_700)");
  stream.clear_error();
  EXPECT_EQ(error_of(stream.barrier()), error_of(lost)) << "the device is lost";
}

TEST(CudaPrimitives, RefuseMoreKeysThanTheyCanEncode) {
  FakeCuda fake;
  Stream& stream = fake.device->default_stream();
  const auto done = stream.issue("test.encode", [&](InStream& s) {
    primitives::run_length_encode(s, nullptr, nullptr, nullptr, size_t{1} << 31, nullptr);
  });
  EXPECT_EQ(error_of(done), "device cuda: encoding runs of 2147483648 keys; at most 2147483647 can be");
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange);
}

// A primitive needs as much as its input once more, and keeps it for the next.
TEST(CudaPrimitives, KeepTheirScratchMemoryAndGrowItInPlace) {
  FakeCuda fake;
  Stream& stream = fake.device->default_stream();
  auto buffer = fake.device->reserve(size_t{1} << 20, size_t{1} << 20);
  const auto sort = [&](size_t n) {
    EXPECT_EQ(error_of(stream.issue("test.sort",
                                    [&](InStream& s) {
                                      primitives::sort_by_key(s, buffer->as<uint32_t>(),
                                                              buffer->as<uint32_t>() + n, n);
                                    })),
              "");
    return fake.driver.used_bytes();
  };
  const size_t before = fake.driver.used_bytes();
  const size_t large = sort(100'000);
  EXPECT_GE(large, before + 16 * 100'000);
  EXPECT_EQ(sort(1000), large);
  EXPECT_EQ(sort(100'000), large);
}

TEST(CudaPrimitives, SayWhenThereIsNoMemoryForTheirScratch) {
  FakeCuda fake({.memory_bytes = size_t{16} << 20});
  Stream& stream = fake.device->default_stream();
  auto buffer = fake.device->reserve(size_t{8} << 20, size_t{8} << 20);
  const auto sort = [&](size_t n) {
    return stream.issue("test.sort", [&stream, &buffer, n](InStream& s) {
      primitives::sort_by_key(s, buffer->as<uint32_t>(), buffer->as<uint32_t>() + n, n);
    });
  };
  const auto refused = sort(size_t{1} << 20);
  EXPECT_EQ(error_of(refused).find("device cuda: cannot allocate "), 0u) << error_of(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  stream.clear_error();
  EXPECT_EQ(error_of(sort(1000)), "");
}

}  // namespace
}  // namespace coppice::fake
