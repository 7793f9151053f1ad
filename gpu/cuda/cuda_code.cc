// Kernels as modules on a GPU (see cuda_code.h).
#include "gpu/cuda/cuda_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace coppice::cuda {
namespace {

std::string entry_name(std::string_view id) {
  std::string name(id);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// Holds what the driver's assembler says of a module. Its information (registers, spills) is asked for in
// a profile only.
class AssemblerLog {
 public:
  explicit AssemblerLog(bool with_information) : information_(with_information ? kBytes : 0) {
    // Numbers are passed in the pointers themselves.
    add(JitOption::kErrorLogBuffer, errors_.data());
    add(JitOption::kErrorLogBufferSizeBytes, reinterpret_cast<void*>(errors_.size() - 1));
    add(JitOption::kGenerateLineInfo, reinterpret_cast<void*>(1));
    if (!with_information) return;
    add(JitOption::kInfoLogBuffer, information_.data());
    add(JitOption::kInfoLogBufferSizeBytes, reinterpret_cast<void*>(information_.size() - 1));
    add(JitOption::kLogVerbose, reinterpret_cast<void*>(1));
  }
  unsigned count() const { return static_cast<unsigned>(options_.size()); }
  JitOption* options() { return options_.data(); }
  void** values() { return values_.data(); }
  const char* errors() const { return errors_.data(); }
  std::string all() const { return std::string(information_.data()) + errors(); }

 private:
  static constexpr size_t kBytes = 64 << 10;
  void add(JitOption option, void* value) {
    options_.push_back(option);
    values_.push_back(value);
  }
  std::vector<char> errors_ = std::vector<char>(8192), information_;
  std::vector<JitOption> options_;
  std::vector<void*> values_;
};

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
  IntrusivePtr<LoadedCode> load(const std::string& image, const jit::SpecializeRequest& request) override {
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
  // The more thread blocks share a multiprocessor, the more run while others wait for memory, but the fewer
  // registers a thread has. What does not fit into them would be on a stack, which costs more.
  std::vector<Module> loaded;
  const auto try_blocks = [&](int blocks) {
    loaded.push_back(assemble(jit::with_blocks_per_multiprocessor(ptx, blocks)));
    return loaded.back().stack_bytes;
  };
  size_t chosen = 0;
  try {
    // With all registers, a stack holds the kernel's own variables, and nothing makes it smaller.
    if (const int stack = try_blocks(12); stack > 0 && try_blocks(1) < stack) {
      chosen = 1;
      for (const int blocks : {8, 6, 4, 3}) {
        if (try_blocks(blocks) > loaded[1].stack_bytes) continue;
        chosen = loaded.size() - 1;
        break;
      }
    }
  } catch (...) {
    for (const Module& module : loaded) context_->driver().module_unload(module.handle);
    throw;
  }
  module_ = loaded[chosen];
  for (const Module& module : loaded) {
    if (module.handle != module_.handle) context_->driver().module_unload(module.handle);
  }
}

CudaCode::Module CudaCode::assemble(const std::string& ptx) const {
  const Driver& driver = context_->driver();
  AssemblerLog log(context_->profile() != nullptr);
  const auto failed = [&](Result result) {
    return context_->lost_or(result, refused_ptx(driver, result, kernel_, ptx, log.errors()));
  };
  Module m;
  Result result =
      driver.module_load_data_ex(&m.handle, ptx.c_str(), log.count(), log.options(), log.values());
  if (KernelProfile* const profile = context_->profile())
    profile->add_log(kernel_, result == Result::kSuccess, log.all());
  if (result != Result::kSuccess) throw failed(result);
  result = driver.module_get_function(&m.function, m.handle, entry_name(kernel_).c_str());
  if (result != Result::kSuccess) {
    driver.module_unload(m.handle);
    throw failed(result);
  }
  result = driver.func_get_attribute(&m.stack_bytes, FunctionAttribute::kLocalSizeBytes, m.function);
  if (result != Result::kSuccess) driver.module_unload(m.handle);
  context_->check(result, fmt::format("cuFuncGetAttribute of kernel {}", kernel_));
  return m;
}

CudaCode::~CudaCode() {
  const Context::FreeingScope scope(*context_);
  context_->driver().module_unload(module_.handle);
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
    context_->check(driver.func_set_attribute(module_.function, FunctionAttribute::kMaxDynamicSharedSizeBytes,
                                              static_cast<int>(shared_bytes)),
                    fmt::format("cuFuncSetAttribute of kernel {}", kernel_));
    allowed_shared_bytes_ = static_cast<int>(shared_bytes);
  }
  int per_multiprocessor = 0;
  context_->check(driver.occupancy_max_active_blocks(&per_multiprocessor, module_.function,
                                                     kGpuThreadsPerBlock, shared_bytes),
                  fmt::format("cuOccupancyMaxActiveBlocksPerMultiprocessor of kernel {}", kernel_));
  if (per_multiprocessor <= 0) {
    int registers = 0;
    driver.func_get_attribute(&registers, FunctionAttribute::kNumRegs, module_.function);
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

KernelResources CudaCode::resources(uint32_t shared_bytes) {
  const Driver& driver = context_->driver();
  const auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    context_->check(driver.func_get_attribute(&value, which, module_.function),
                    fmt::format("cuFuncGetAttribute of kernel {}", kernel_));
    return value;
  };
  const Properties& gpu = context_->properties();
  KernelResources of;
  of.registers = attribute(FunctionAttribute::kNumRegs);
  of.stack_bytes = attribute(FunctionAttribute::kLocalSizeBytes);
  of.shared_bytes = attribute(FunctionAttribute::kSharedSizeBytes) + static_cast<int>(shared_bytes);
  of.blocks = static_cast<int>(max_blocks(shared_bytes)) / gpu.multiprocessors;
  of.occupancy_percent =
      100 * of.blocks * static_cast<int>(kGpuThreadsPerBlock) / std::max(1, gpu.max_threads);
  return of;
}

std::string why_not_ptx(std::string_view image, std::string_view id, int sm) {
  if (image.find('\0') != image.npos || image.find(".version ") == image.npos) return "it is no PTX";
  // This accepts ".target sm_90" and ".target sm_90, debug", but not sm_90a.
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
