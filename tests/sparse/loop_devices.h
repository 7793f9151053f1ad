// The devices that tests of loops run on: one thread, several, and an emulated GPU where there is one.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "tests/sparse/staging.h"

namespace coppice {

class LoopTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    try {
      device = name == "cpu1" ? Device::cpu(1) : name == "cpu4" ? Device::cpu(4) : Device::named(name);
    } catch (const Error& e) {
      GTEST_SKIP() << e.what();
    }
    // Without the checks, whatever COPPICE_DEBUG says: zeros from outside the domain are among what is compared.
    program = std::make_unique<Program>(device, jit::CodegenOptions{});
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
  bool emulated() const { return GetParam() == std::string("simt"); }

  IntrusivePtr<Device> device;
  std::unique_ptr<Program> program;
};

inline std::string loop_device_name(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace coppice
