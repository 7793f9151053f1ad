// Tests of loops: on one thread, on several, and on the other devices of
// test_devices.h. The program has no checks.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {

class LoopTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    device = test_device(GetParam(), reason);
    if (!device) GTEST_SKIP() << reason;
    // Without the checks, whatever COPPICE_DEBUG says: zeros from outside the domain are among what is
    // compared.
    program = std::make_unique<Program>(device, CodegenOptions{});
  }
  template <class Kernel, class... Arguments>
  void run(const Kernel& kernel, const Loop& loop, Arguments&&... arguments) {
    run_on(*program, kernel, loop, std::forward<Arguments>(arguments)...);
  }
  // The words of the error that a launch gives, or "".
  template <class Kernel, class... Arguments>
  std::string refusal(const Kernel& kernel, const Loop& loop, Arguments&&... arguments) {
    try {
      run(kernel, loop, std::forward<Arguments>(arguments)...);
    } catch (const Error& e) {
      device->default_stream().clear_error();
      return e.what();
    }
    return "";
  }
  bool emulated() const { return is_emulated_device(GetParam()); }

  IntrusivePtr<Device> device;
  std::unique_ptr<Program> program;
};

}  // namespace coppice
