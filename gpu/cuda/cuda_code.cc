// Kernels as modules on a GPU (see cuda_code.h).
#include "gpu/cuda/cuda_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace coppice::cuda {
namespace {

std::string entry_name(std::string_view id) {
  std::string name(id);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

class PtxBackend final : public jit::CodeBackend {
 public:
  explicit PtxBackend(IntrusivePtr<Context> context)
      : context_(std::move(context)), target_(jit::newest_ptx_target(context_->properties().sm)) {}
  std::string compile(const jit::SpecializeRequest& request) override {
    return jit::compile_ptx(request, target_);
  }
  std::string why_not_loadable(const std::string& image, const jit::SpecializeRequest& request) override {
    return why_not_ptx(image, request.id, target_.sm);
  }
  IntrusivePtr<jit::LoadedCode> load(const std::string& image,
                                     const jit::SpecializeRequest& request) override {
    return make_intrusive<CudaCode>(context_, image, request.id);
  }

 private:
  const IntrusivePtr<Context> context_;
  const jit::PtxTarget target_;
};

}  // namespace

CudaCode::CudaCode(IntrusivePtr<Context> context, const std::string& ptx, const std::string& kernel)
    : context_(std::move(context)), kernel_(kernel) {
  context_->throw_if_lost();
  const Context::Scope scope(*context_);
  const Driver& driver = context_->driver();
  std::array<char, 8192> log{};
  std::array options{JitOption::kErrorLogBuffer, JitOption::kErrorLogBufferSizeBytes,
                     JitOption::kGenerateLineInfo};
  // Numbers are passed in the pointers themselves.
  std::array<void*, 3> values{log.data(), reinterpret_cast<void*>(log.size() - 1),
                              reinterpret_cast<void*>(1)};
  const auto failed = [&](Result result) {
    return context_->lost_or(result, refused_ptx(driver, result, kernel, ptx, log.data()));
  };
  Result result =
      driver.module_load_data_ex(&module_, ptx.c_str(), options.size(), options.data(), values.data());
  if (result != Result::kSuccess) throw failed(result);
  result = driver.module_get_function(&function_, module_, entry_name(kernel).c_str());
  if (result == Result::kSuccess) return;
  driver.module_unload(module_);
  throw failed(result);
}

CudaCode::~CudaCode() {
  const Context::FreeingScope scope(*context_);
  context_->driver().module_unload(module_);
}

unsigned CudaCode::find_max_blocks(uint32_t shared_bytes) {
  const Driver& driver = context_->driver();
  const Properties& gpu = context_->properties();
  if (shared_bytes > static_cast<uint32_t>(gpu.max_shared_bytes)) {
    throw Error(
        ErrorCode::kOutOfRange,
        fmt::format(
            "kernel {}: its thread blocks need {} bytes of shared memory, and those of {} have at most "
            "{}",
            kernel_, shared_bytes, gpu.name, gpu.max_shared_bytes));
  }
  if (static_cast<int>(shared_bytes) > allowed_shared_bytes_) {
    context_->check(driver.func_set_attribute(function_, FunctionAttribute::kMaxDynamicSharedSizeBytes,
                                              static_cast<int>(shared_bytes)),
                    fmt::format("cuFuncSetAttribute of kernel {}", kernel_));
    allowed_shared_bytes_ = static_cast<int>(shared_bytes);
  }
  int per_multiprocessor = 0;
  context_->check(
      driver.occupancy_max_active_blocks(&per_multiprocessor, function_, kGpuThreadsPerBlock, shared_bytes),
      fmt::format("cuOccupancyMaxActiveBlocksPerMultiprocessor of kernel {}", kernel_));
  if (per_multiprocessor <= 0) {
    int registers = 0;
    driver.func_get_attribute(&registers, FunctionAttribute::kNumRegs, function_);
    throw Error(
        ErrorCode::kOutOfRange,
        fmt::format("kernel {}: a thread block of {} threads with {} registers each and {} bytes of shared "
                    "memory does not fit a multiprocessor of {}",
                    kernel_, kGpuThreadsPerBlock, registers, shared_bytes, gpu.name));
  }
  return static_cast<unsigned>(per_multiprocessor) * static_cast<unsigned>(gpu.multiprocessors);
}

unsigned CudaCode::max_blocks(uint32_t shared_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = max_blocks_.find(shared_bytes);
  if (found != max_blocks_.end()) return found->second;
  return max_blocks_[shared_bytes] = find_max_blocks(shared_bytes);
}

std::string why_not_ptx(std::string_view image, std::string_view id, int sm) {
  if (image.find('\0') != image.npos || image.find(".version ") == image.npos) return "it is no PTX";
  // ".target sm_90" and ".target sm_90, debug", but not sm_90a.
  const std::string target = fmt::format(".target sm_{}", sm);
  const size_t at = image.find(target);
  const size_t behind = at + target.size();
  if (at == image.npos || (behind < image.size() && image[behind] != '\n' && image[behind] != ','))
    return fmt::format("it is not for sm_{}", sm);
  if (image.find(fmt::format(".entry {}(", entry_name(id))) == image.npos)
    return fmt::format("it has no kernel {}", entry_name(id));
  return {};
}

std::shared_ptr<jit::CodeBackend> ptx_backend(IntrusivePtr<Context> context) {
  return std::make_shared<PtxBackend>(std::move(context));
}

}  // namespace coppice::cuda
