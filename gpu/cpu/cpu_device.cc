// The cpu device: oneTBB for loops, virtual memory for buffers, LLVM ORC for kernels.
#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/machine_memory.h"
#include "gpu/buffer_ranges.h"
#include "gpu/cpu/cpu_buffer.h"
#include "gpu/cpu/tbb_stream_backend.h"
#include "gpu/cpu/worker_limit.h"
#include "gpu/device.h"
#include "gpu/kernel_store.h"
#include "gpu/messages.h"
#include "gpu/stream_queue.h"

namespace coppice {
namespace {

// No machine has more cores; each is a thread that compiles, too, and systems limit these.
constexpr int kMostThreads = 4096;

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : threads_(options.threads > 0 ? options.threads : tbb::info::default_concurrency()),
        deterministic_(options.deterministic),
        workers_(threads_ - 1),
        arena_(threads_, 1),
        kernels_(threads_) {
    context_.messages = messages_area_->as<MessageArea>();
    stream_ = new_stream();
  }
  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("{} threads, {}{}", threads_, jit::host_target().cpu,
                       deterministic_ ? ", deterministic" : "");
  }
  int threads() const override { return threads_; }
  bool commits_on_touch() const override { return true; }
  uint64_t memory_bytes() const override { return machine_memory_bytes(); }
  void wait_copy(void* to, const void* from, size_t bytes) override {
    check_copied(context(), to, from, bytes);
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  Stream& default_stream() override { return *stream_; }
  DeviceContext& context() override { return context_; }
  MessageLog* message_log() override { return &messages_; }
  KernelStore& kernels() override { return kernels_; }

 private:
  IntrusivePtr<Buffer> new_buffer(size_t reserved_bytes, size_t initial_bytes, Filling filling) override {
    auto buffer = make_intrusive<CpuBuffer>(reserved_bytes, initial_bytes, filling);
    buffer->announce(std::max(reserved_bytes, initial_bytes), context_);
    return buffer;
  }
  IntrusivePtr<Stream> new_stream_beside() override { return new_stream(share<RefCounted>(this)); }
  IntrusivePtr<StreamQueue> new_stream(IntrusivePtr<RefCounted> device = {}) {
    return make_intrusive<StreamQueue>(
        std::make_unique<TbbStreamBackend>(arena_, threads_ == 1 ? &one_loop_ : nullptr, deterministic_,
                                           messages_),
        context_, "coppice.stream", std::move(device));
  }

  int threads_;
  bool deterministic_;
  DeviceContext context_{};
  IntrusivePtr<Buffer> messages_area_ =
      make_intrusive<CpuBuffer>(sizeof(MessageArea), sizeof(MessageArea), Filling::kScattered);
  MessageLog messages_{*messages_area_->as<MessageArea>()};
  WorkerClaim workers_;    // oneTBB starts no more of them than cores unless told to
  tbb::task_arena arena_;  // one slot is kept for the stream's own thread, which takes part in every loop
  std::mutex one_loop_;    // of a device of one thread
  KernelStore kernels_;
  IntrusivePtr<StreamQueue> stream_;  // last: its thread uses all of the above
};

}  // namespace

IntrusivePtr<Device> Device::cpu(const CpuOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("Device::cpu: {} threads; 1 to {} are possible, and 0 for all cores",
                            options.threads, kMostThreads));
  return make_intrusive<CpuDevice>(options);
}

}  // namespace coppice
