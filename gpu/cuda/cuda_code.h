// Kernels as modules on a GPU: PTX from LLVM, made machine code by the driver.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu/cuda/context.h"
#include "gpu/cuda/kernel_profile.h"
#include "gpu/jit/code_backend.h"
#include "gpu/launch_block.h"

namespace coppice::cuda {

// Thread-safe. Unloaded with the last reference: whoever launches it keeps one until the launch is done.
class CudaCode final : public LoadedCode {
 public:
  // Errors: kCompile with the assembler's first error; kUnavailable.
  CudaCode(IntrusivePtr<Context> context, const std::string& ptx, const std::string& kernel);
  ~CudaCode() override;
  FunctionHandle function() const { return module_.function; }
  // Returns the most blocks of kGpuThreadsPerBlock threads that run on the whole GPU at once, each with so
  // much shared memory, at least 1. Errors: kOutOfRange where not even one does.
  unsigned max_blocks(uint32_t shared_bytes);
  // Returns what a launch that asks for so much shared memory occupies; to be called after max_blocks() of
  // as much.
  KernelResources resources(uint32_t shared_bytes);

 private:
  struct Module {
    ModuleHandle handle = nullptr;
    FunctionHandle function = nullptr;
    int stack_bytes = 0;  // of a thread
  };
  // Returns a loaded module, which is the caller's to unload.
  Module assemble(const std::string& ptx) const;
  unsigned find_max_blocks(uint32_t shared_bytes);

  const IntrusivePtr<Context> context_;
  const std::string kernel_;
  Module module_;
  std::mutex mutex_;
  std::map<uint32_t, unsigned> max_blocks_;  // by shared bytes
  int allowed_shared_bytes_ = 48 << 10;      // what every kernel may ask for
};

// Returns an empty text, or why `image` is no PTX of ours for the kernel `id` ("file.kernel") and the
// target.
std::string why_not_ptx(std::string_view image, std::string_view id, int sm);

std::shared_ptr<jit::CodeBackend> ptx_backend(IntrusivePtr<Context> context);

}  // namespace coppice::cuda
