// Kernels as modules on a GPU: PTX from LLVM, made machine code by the driver.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu/cuda/context.h"
#include "gpu/jit/code_backend.h"

namespace coppice::cuda {

// Threads of a block: four warps hide latency, and small leaves do not leave most of them idle.
inline constexpr unsigned kBlockThreads = 128;

// Thread-safe. Unloaded with the last reference: whoever launches it keeps one until the launch is done.
class CudaCode final : public jit::LoadedCode {
 public:
  // Errors: kCompile with the assembler's first error; kUnavailable.
  CudaCode(IntrusivePtr<Context> context, const std::string& ptx, const std::string& kernel);
  ~CudaCode() override;
  FunctionHandle function() const { return function_; }
  // The most blocks of kBlockThreads threads that run on the whole GPU at once, each with so much shared memory, at least
  // 1. Errors: kOutOfRange where not even one does.
  unsigned max_blocks(uint32_t shared_bytes);

 private:
  unsigned find_max_blocks(uint32_t shared_bytes);

  const IntrusivePtr<Context> context_;
  const std::string kernel_;
  ModuleHandle module_ = nullptr;
  FunctionHandle function_ = nullptr;
  std::mutex mutex_;
  std::map<uint32_t, unsigned> max_blocks_;  // by shared bytes
  int allowed_shared_bytes_ = 48 << 10;      // what every kernel may ask for
};

// The newest target that LLVM 19 knows and a GPU of this compute capability takes, 75 to 90: newer GPUs run sm_90's PTX.
int ptx_target(int sm);

// Empty, or why `image` is no PTX of ours for the kernel `id` ("file.kernel") and the target.
std::string why_not_ptx(std::string_view image, std::string_view id, int sm);

// The libdevice that is linked: bitcode's path, or empty for none.
std::shared_ptr<jit::CodeBackend> ptx_backend(IntrusivePtr<Context> context, std::string libdevice_path);

}  // namespace coppice::cuda
