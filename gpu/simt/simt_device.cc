// The simt device: an emulated GPU for the loops of its launches, with memory that the host cannot touch
// (address.h).
#include <fmt/format.h>
#include <tbb/info.h>

#include <cstring>
#include <memory>

#include "core/machine_memory.h"
#include "gpu/cpu/host_stream_backend.h"
#include "gpu/device.h"
#include "gpu/kernel_store.h"
#include "gpu/messages.h"
#include "gpu/simt/machine.h"
#include "gpu/simt/simt_buffer.h"
#include "gpu/stream_queue.h"

namespace coppice {
namespace {

class SimtStreamBackend final : public HostStreamBackend {
 public:
  SimtStreamBackend(const simt::Options& options, MessageLog& log)
      : HostStreamBackend(log), machine_(options) {}
  void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) override {
    machine_.run(launch.name, block, entry, count, launch.shared_bytes);
  }
  void* host_address(const void* address) const override {
    return const_cast<void*>(simt::host_address(address));
  }
  void run_function(const std::function<void()>& function) override { function(); }

 private:
  simt::Machine machine_;
};

class SimtDevice final : public Device {
 public:
  explicit SimtDevice(const simt::Options& options)
      : options_(with_own_memory(options)),
        kernels_(tbb::info::default_concurrency()),
        stream_(new_stream()) {
    simt::host_address(&context())->messages = messages_area_->as<MessageArea>();
  }
  std::string_view name() const override { return "simt"; }
  std::string description() const override {
    return fmt::format("{} threads per block, {} multiprocessors, seed {}", options_.threads_per_block,
                       options_.multiprocessors, options_.seed);
  }
  int threads() const override {
    return options_.threads_per_block * options_.blocks_per_multiprocessor * options_.multiprocessors;
  }
  bool shares_items() const override { return true; }
  uint64_t memory_bytes() const override { return machine_memory_bytes(); }
  void wait_copy(void* to, const void* from, size_t bytes) override {
    check_copied(context(), to, from, bytes);
    if (bytes > 0) std::memcpy(simt::host_address(to), simt::host_address(from), bytes);
  }
  Stream& default_stream() override { return *stream_; }
  DeviceContext& context() override { return *context_->as<DeviceContext>(); }
  MessageLog* message_log() override { return &messages_; }
  KernelStore& kernels() override { return kernels_; }
  CodegenOptions codegen(CodegenOptions asked) const override {
    asked.simt = true;
    return asked;
  }

 private:
  IntrusivePtr<Buffer> new_buffer(size_t reserved_bytes, size_t initial_bytes, Filling filling) override {
    return make_intrusive<simt::SimtBuffer>(reserved_bytes, initial_bytes, filling, &context());
  }
  IntrusivePtr<Stream> new_stream_beside() override { return new_stream(share<RefCounted>(this)); }
  static simt::Options with_own_memory(simt::Options options) {
    options.own_memory = true;
    return options;
  }
  static IntrusivePtr<Buffer> memory(size_t bytes) {
    return make_intrusive<simt::SimtBuffer>(bytes, bytes, Filling::kScattered);
  }
  IntrusivePtr<StreamQueue> new_stream(IntrusivePtr<RefCounted> device = {}) {
    return make_intrusive<StreamQueue>(std::make_unique<SimtStreamBackend>(options_, messages_), context(),
                                       "coppice.simt", std::move(device));
  }

  const simt::Options options_;
  const IntrusivePtr<Buffer> context_ = memory(sizeof(DeviceContext));
  const IntrusivePtr<Buffer> messages_area_ = memory(sizeof(MessageArea));
  MessageLog messages_{*simt::host_address(messages_area_->as<MessageArea>())};
  KernelStore kernels_;
  const IntrusivePtr<StreamQueue> stream_;  // last: its thread uses all of the above
};

}  // namespace

IntrusivePtr<Device> Device::simt(const coppice::simt::Options& options) {
  return make_intrusive<SimtDevice>(options);
}

}  // namespace coppice
