// The simt device: the host's memory, and an emulated GPU for the loops of its launches.
#include <fmt/format.h>
#include <tbb/info.h>

#include <memory>

#include "gpu/cpu/cpu_buffer.h"
#include "gpu/cpu/loop_runner.h"
#include "gpu/device.h"
#include "gpu/kernel_store.h"
#include "gpu/messages.h"
#include "gpu/simt/machine.h"
#include "gpu/stream_queue.h"

namespace coppice {
namespace {

class SimtLoopRunner final : public LoopRunner {
 public:
  explicit SimtLoopRunner(const simt::Options& options) : machine_(options) {}
  void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) override {
    machine_.run(launch.name, block, entry, count, launch.shared_bytes);
  }
  void run_function(const std::function<void()>& function) override { function(); }

 private:
  simt::Machine machine_;
};

class SimtDevice final : public Device {
 public:
  explicit SimtDevice(const simt::Options& options)
      : options_(options), kernels_(tbb::info::default_concurrency()), stream_(new_stream()) {}
  std::string_view name() const override { return "simt"; }
  std::string description() const override {
    return fmt::format("{} threads per block, {} multiprocessors, seed {}", options_.threads_per_block,
                       options_.multiprocessors, options_.seed);
  }
  int threads() const override {
    return options_.threads_per_block * options_.blocks_per_multiprocessor * options_.multiprocessors;
  }
  IntrusivePtr<Buffer> reserve(size_t reserved_bytes, size_t initial_bytes, Filling filling) override {
    return make_intrusive<CpuBuffer>(reserved_bytes, initial_bytes, filling);
  }
  IntrusivePtr<Stream> create_stream() override { return new_stream(); }
  Stream& default_stream() override { return *stream_; }
  DeviceContext& context() override { return context_; }
  KernelStore& kernels() override { return kernels_; }
  jit::CodegenOptions codegen(jit::CodegenOptions asked) const override {
    asked.simt = true;
    return asked;
  }

 private:
  IntrusivePtr<StreamQueue> new_stream() {
    return make_intrusive<StreamQueue>(std::make_unique<SimtLoopRunner>(options_), context_, "coppice.simt");
  }

  const simt::Options options_;
  DeviceContext context_{};
  MessageLog messages_{context_};
  KernelStore kernels_;
  const IntrusivePtr<StreamQueue> stream_;  // last: its thread uses all of the above
};

}  // namespace

IntrusivePtr<Device> Device::simt(const coppice::simt::Options& options) {
  return make_intrusive<SimtDevice>(options);
}

}  // namespace coppice
