// The cuda device: one NVIDIA GPU through its driver.
#pragma once
#include <functional>
#include <memory>

#include "gpu/cuda/driver.h"
#include "gpu/device.h"
#include "gpu/jit/code_backend.h"

namespace coppice::cuda {

struct DeviceOptions {
  int ordinal = 0;
  // Every launch is waited for, so that an illegal access names its kernel. COPPICE_DEBUG=checks turns
  // this on.
  bool exact_errors = codegen_options().checks;
  // Returns the back end that the kernel store gets instead of the one that is given: for tests that look
  // at, or run, what is compiled.
  std::function<std::shared_ptr<jit::CodeBackend>(std::shared_ptr<jit::CodeBackend>)> wrap_backend{};
};

// `driver` is initialized (initialize()) and outlives the device. Errors: kUnavailable with the reason.
IntrusivePtr<Device> make_device(const Driver& driver, const DeviceOptions& options = {});

// Returns how many GPUs the driver shows, 0 where it says that there are none. Errors: kUnavailable.
int device_count(const Driver& driver);

}  // namespace coppice::cuda
