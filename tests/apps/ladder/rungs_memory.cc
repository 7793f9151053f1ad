// The rungs driver, memory and copy (see ladder.h).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "gpu/cuda/context.h"
#include "gpu/cuda/driver_error.h"
#include "tests/apps/ladder/ladder.h"
#include "tests/sparse/staging.h"

namespace coppice::ladder {

std::string run_driver(Bench& bench) {
  const cuda::Driver* const driver = bench.driver();
  if (driver == nullptr) return std::string(bench.device()->description());
  const auto context = make_intrusive<cuda::Context>(*driver, 0);
  const cuda::Properties& gpu = context->properties();
  const cuda::Clocks clocks = context->clocks();
  size_t free = 0, total = 0;
  const cuda::Context::Scope scope(*context);
  context->check(driver->mem_get_info(&free, &total), "cuMemGetInfo");
  return fmt::format(
      "{}, compute capability {}.{}, driver of CUDA {}, {} multiprocessors at {} MHz, memory at {} MHz on {} "
      "bits, {} of "
      "{} MiB free, {} bytes of shared memory per block",
      gpu.name, gpu.sm / 10, gpu.sm % 10, cuda::version_text(gpu.driver_version), gpu.multiprocessors,
      clocks.multiprocessor_kHz / 1000, clocks.memory_kHz / 1000, clocks.memory_bus_bits, free >> 20,
      total >> 20, gpu.max_shared_bytes);
}

namespace {

std::vector<uint32_t> counting(size_t n) {
  std::vector<uint32_t> values(n);
  std::iota(values.begin(), values.end(), 1u);
  return values;
}

}  // namespace

// A range that grows in place keeps what it holds, and can be given back and be grown again.
std::string run_memory(Bench& bench) {
  const auto device = bench.device();
  const size_t first = size_t{1} << 20, most = size_t(bench.scaled(512, 8)) << 20;
  const IntrusivePtr<Buffer> buffer = device->reserve(2 * most, first);
  auto* const words = buffer->as<uint32_t>();
  const std::vector<uint32_t> values = counting(first / 4);
  device->wait_copy(words, values.data(), first);
  for (size_t bytes = 2 * first; bytes <= most; bytes *= 2) buffer->grow(bytes);
  finish(device->default_stream().fill(words + most / 8, 0x5A, most / 2));
  std::vector<uint32_t> back(first / 4), filled(4);
  device->wait_copy(back.data(), words, first);
  expect(back == values, "memory does not hold what was written before it grew");
  device->wait_copy(filled.data(), words + most / 4 - 4, 16);
  expect(filled == std::vector<uint32_t>(4, 0x5A5A5A5A),
         "memory that was added does not hold what it was filled with");
  buffer->shrink(first);
  buffer->grow(2 * first);
  device->wait_copy(back.data(), words, first);
  expect(back == values, "memory does not hold what was written before it shrank");
  return fmt::format("{} MiB mapped in a range of {}", most >> 20, 2 * most >> 20);
}

std::string run_copy(Bench& bench) {
  const auto device = bench.device();
  Stream& stream = device->default_stream();
  const size_t bytes = size_t(bench.scaled(512, 2)) << 20;
  const IntrusivePtr<Buffer> from = device->reserve(bytes, bytes), to = device->reserve(bytes, bytes);
  for (const size_t n : {size_t{1}, size_t{1000}, size_t{100'000}, bytes / 8}) {
    const std::vector<uint32_t> values = counting(n);
    std::vector<uint32_t> back(n);
    stream.copy(from->data(), values.data(), 4 * n);
    stream.copy(to->data(), from->data(), 4 * n);
    finish(stream.copy(back.data(), to->data(), 4 * n));
    expect(back == values, fmt::format("a copy of {} bytes to the device and back is not the same", 4 * n));
  }
  finish(stream.fill(from->data(), 1, bytes));
  std::vector<double> seconds;
  for (int run = 0; run < 9; ++run) {
    constexpr int kCopies = 4;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 1; i < kCopies; ++i) stream.copy(to->data(), from->data(), bytes);
    finish(stream.copy(to->data(), from->data(), bytes));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    seconds.push_back(took.count() / kCopies);
  }
  std::nth_element(seconds.begin(), seconds.begin() + 4, seconds.end());
  return fmt::format("{:.1f} GB/s read and written, {} MiB at a time",
                     2e-9 * static_cast<double>(bytes) / seconds[4], bytes >> 20);
}

}  // namespace coppice::ladder
