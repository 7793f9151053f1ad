// Tests of the cuda device on the fake driver share this: kernels without LLVM, and waiting.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "gpu/cuda/cuda_code.h"
#include "gpu/cuda/cuda_device.h"
#include "tests/gpu/fake_driver.h"

namespace coppice::fake {

// PTX with what the fake, and the check of cached PTX, read in it.
inline std::string ptx_of(const std::string& id, int sm = 90) {
  std::string name = id;
  std::replace(name.begin(), name.end(), '.', '_');
  return fmt::format(".version 7.8\n.target sm_{}\n.address_size 64\n\n.visible .entry {}(\n) {{ ret; }}\n",
                     sm, name);
}

// A kernel's code, and a launch of it. `name` outlives the launch.
inline AsyncValueRef<IntrusivePtr<LoadedCode>> code_of(const cuda::Driver& driver, const std::string& id) {
  auto context = make_intrusive<cuda::Context>(driver, 0);
  return make_available_async_value<IntrusivePtr<LoadedCode>>(
      make_intrusive<cuda::CudaCode>(context, ptx_of(id), id));
}
inline Launch launch_of(const cuda::Driver& driver, const char* id, uint64_t items = 1) {
  Launch launch;
  launch.name = id;
  launch.code = code_of(driver, id);
  launch.block = {.version = kLaunchBlockVersion};
  launch.block.item_count = items;
  return launch;
}

template <class T>
void set_argument(LaunchBlock& block, const T& value) {
  std::memcpy(block.arguments, &value, sizeof value);
}
template <class T>
T argument(const LaunchBlock& block) {
  T value;
  std::memcpy(&value, block.arguments, sizeof value);
  return value;
}

// Waits for what another thread is sure to bring about.
template <class Condition>
void wait_until(const Condition& condition) {
  while (!condition()) std::this_thread::yield();
}

inline std::string error_of(const AsyncValueRef<Chain>& done) {
  wait(done);
  return done.is_error() ? done.error().what() : "";
}

// Returns what a function throws, or an error of kInternal without a message.
inline Error error_from(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "");
}

// Returns what the device's memory holds, from outside of the stream's order.
template <class T>
std::vector<T> wait_read(Stream& stream, const T* from, size_t count) {
  std::vector<T> values(count);
  const auto done = stream.copy(values.data(), from, count * sizeof(T));
  wait(done);
  if (done.is_error()) throw done.error();
  return values;
}

// The fake outlives the device; nothing was done wrong and nothing is left when both have gone.
class FakeCuda {
 public:
  explicit FakeCuda(const Options& options = {}, const cuda::DeviceOptions& device_options = {})
      : driver(options), device(cuda::make_device(driver.table(), device_options)) {}
  ~FakeCuda() {
    device.reset();
    EXPECT_EQ(driver.report(), "");
  }
  FakeDriver driver;
  IntrusivePtr<Device> device;
};

}  // namespace coppice::fake
