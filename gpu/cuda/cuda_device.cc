// The cuda device: driver API for streams, virtual memory management for buffers, LLVM's NVPTX for kernels.
#include "gpu/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gpu/buffer_ranges.h"
#include "gpu/cuda/context.h"
#include "gpu/cuda/cuda_code.h"
#include "gpu/cuda/cuda_stream_backend.h"
#include "gpu/cuda/message_memory.h"
#include "gpu/cuda/nvtx.h"
#include "gpu/cuda/small_memory.h"
#include "gpu/kernel_store.h"
#include "gpu/stream_queue.h"

namespace coppice::cuda {
namespace {

KernelStore::Options store_options(const IntrusivePtr<Context>& context, const DeviceOptions& device) {
  KernelStore::Options options;
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.key = jit::ptx_key_context(jit::newest_ptx_target(context->properties().sm));
  options.backend = ptx_backend(context);
  if (device.wrap_backend) options.backend = device.wrap_backend(std::move(options.backend));
  return options;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(const Driver& driver, const DeviceOptions& options)
      : exact_errors_(options.exact_errors),
        context_(make_intrusive<Context>(driver, options.ordinal)),
        small_(make_intrusive<SmallMemory>(context_)),
        device_context_(make_buffer(small_, sizeof(DeviceContext), sizeof(DeviceContext))),
        messages_(context_),
        kernels_(store_options(context_, options)),
        stream_(new_stream()) {
    MessageArea* const area = messages_.area();
    wait_copy(&context().messages, &area, sizeof area);
  }
  std::string_view name() const override { return "cuda"; }
  std::string description() const override {
    const Properties& p = context_->properties();
    return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB, driver of CUDA {}",
                       p.name, p.sm / 10, p.sm % 10, p.multiprocessors,
                       static_cast<double>(p.memory_bytes) / double(size_t{1} << 30),
                       version_text(p.driver_version));
  }
  int threads() const override {
    constexpr int kThreadsPerMultiprocessor = 1024;  // resident at once: 1024 to 2048
    return context_->properties().multiprocessors * kThreadsPerMultiprocessor;
  }
  bool shares_items() const override { return true; }
  uint64_t memory_bytes() const override { return context_->properties().memory_bytes; }
  void wait_copy(void* to, const void* from, size_t bytes) override {
    context_->throw_if_lost();
    check_copied(context(), to, from, bytes);
    if (bytes == 0) return;
    const Context::Scope scope(*context_);
    context_->wait_copy(reinterpret_cast<DeviceAddress>(to), reinterpret_cast<DeviceAddress>(from), bytes);
  }
  Stream& default_stream() override { return *stream_; }
  DeviceContext& context() override { return *device_context_->as<DeviceContext>(); }
  MessageLog* message_log() override { return &messages_.log(); }
  KernelStore& kernels() override { return kernels_; }

 private:
  IntrusivePtr<Buffer> new_buffer(size_t reserved_bytes, size_t initial_bytes, Filling) override {
    IntrusivePtr<Buffer> buffer = make_buffer(small_, reserved_bytes, initial_bytes);
    BufferRanges::all().set(buffer->data(), std::max(reserved_bytes, initial_bytes), buffer->reserved_bytes(),
                            &context());
    return buffer;
  }
  IntrusivePtr<Stream> new_stream_beside() override { return new_stream(share<RefCounted>(this)); }
  IntrusivePtr<StreamQueue> new_stream(IntrusivePtr<RefCounted> device = {}) {
    const bool owns_status = !device;  // of all streams, the default one
    auto backend = std::make_unique<CudaStreamBackend>(context_, small_, device_context_, messages_.log(),
                                                       exact_errors_, owns_status);
    return make_intrusive<StreamQueue>(std::move(backend), context(), "coppice.cuda", std::move(device));
  }

  const bool exact_errors_;
  const IntrusivePtr<Context> context_;
  const IntrusivePtr<SmallMemory> small_;
  const IntrusivePtr<Buffer> device_context_;
  MessageMemory messages_;
  KernelStore kernels_;
  const IntrusivePtr<StreamQueue> stream_;  // last: its thread uses all of the above
};

}  // namespace

int device_count(const Driver& driver) {
  int count = 0;
  const Result result = driver.device_get_count(&count);
  if (result == Result::kNoDevice) return 0;
  if (result != Result::kSuccess) throw driver_error(driver, result, "cuDeviceGetCount");
  return count;
}

IntrusivePtr<Device> make_device(const Driver& driver, const DeviceOptions& options) {
  if (device_count(driver) <= options.ordinal)
    throw Error(ErrorCode::kUnavailable,
                options.ordinal == 0 ? "device cuda: the NVIDIA driver shows no GPU"
                                     : fmt::format("device cuda: there is no GPU {}", options.ordinal));
  trace_to_nvtx();
  return make_intrusive<CudaDevice>(driver, options);
}

}  // namespace coppice::cuda
