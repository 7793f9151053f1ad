// Turns the driver's answers into errors of ours: the one place that knows which of its codes means what.
#pragma once
#include <string>
#include <string_view>

#include "core/error.h"
#include "gpu/cuda/driver.h"

namespace coppice::cuda {

// Returns "12.4" of 12040.
std::string version_text(int version);

// After such an answer the device's context takes no more work: what was on the device is lost.
bool is_fatal(Result result);

// Returns "illegal memory access (CUDA_ERROR_ILLEGAL_ADDRESS)", in one line, for a number of any kind.
std::string describe(const Driver& driver, Result result);

// Returns "device cuda: <what>: <describe>". Codes: kOutOfMemory; kUnavailable for a device, a driver or a
// context that cannot be used (any longer); kInternal for an answer that says that we asked for something
// impossible.
Error driver_error(const Driver& driver, Result result, std::string_view what);

// Says why the driver did not take a kernel's PTX. `log`: what its assembler said. kCompile, or
// kUnavailable where the driver is too old or has no assembler.
Error refused_ptx(const Driver& driver, Result result, std::string_view kernel, std::string_view ptx,
                  std::string_view log);

// Calls cuInit. Errors: kUnavailable, "no NVIDIA driver: ..." or "the NVIDIA driver is too old: ...".
void initialize(const Driver& driver);

}  // namespace coppice::cuda
