// A cuda device on the fake driver whose kernels run. Their PTX goes to the driver, as on a machine with a
// GPU; what a launch does is done, when the fake runs it, by the CPU's code for the same kernel and the same
// constants, with the launch's block and in the fake GPU's memory.
//
// So the host's side of the device is what it is with a GPU: what it copies, orders, waits for, and hands to
// launches. What is not shown is what a GPU makes of the PTX.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/jit/code_loader.h"
#include "sparse/device/layout.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {

// The last block of every kernel, by its name in PTX.
class LaunchedBlocks {
 public:
  void note(const std::string& kernel, const LaunchBlock& block) {
    const std::lock_guard lock(mutex_);
    blocks_[kernel] = block;
  }
  LaunchBlock last(const std::string& kernel) const {
    const std::lock_guard lock(mutex_);
    return blocks_.at(kernel);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, LaunchBlock> blocks_;
};

class RunningBackend final : public jit::CodeBackend {
 public:
  RunningBackend(std::shared_ptr<jit::CodeBackend> ptx, FakeDriver& driver, LaunchedBlocks& blocks)
      : ptx_(std::move(ptx)), driver_(driver), blocks_(blocks) {}
  std::string compile(const jit::SpecializeRequest& request) override { return ptx_->compile(request); }
  std::string why_not_loadable(const std::string& image, const jit::SpecializeRequest& request) override {
    return ptx_->why_not_loadable(image, request);
  }
  IntrusivePtr<LoadedCode> load(const std::string& image, const jit::SpecializeRequest& request) override {
    const auto code = loader_.load(compile_for_host(request), request.entry, request.id);
    driver_.set_kernel_of(image, [code, &blocks = blocks_](const LaunchBlock& block,
                                                           const KernelLaunch& launch) {
      blocks.note(launch.name, block);
      code->entry()(&block, 0, block.count != nullptr ? loop_items(block, *block.count) : block.item_count);
    });
    return ptx_->load(image, request);
  }

 private:
  // A GPU's code gathers no appends, and the host counts on that: a run that makes room for appends, which no
  // CPU does, counts one for each.
  static std::string compile_for_host(jit::SpecializeRequest request) {
    std::vector<std::byte> bytes;
    for (jit::ConstantGlobal& constant : request.constants) {
      if (constant.name != "coppice_fields") continue;
      bytes.assign(constant.bytes.begin(), constant.bytes.end());
      for (size_t at = 0; at < bytes.size(); at += sizeof(coppice::device::FieldBinding)) {
        coppice::device::FieldBinding field;
        std::memcpy(&field, &bytes[at], sizeof field);
        field.access &= ~coppice::device::kGathers;
        std::memcpy(&bytes[at], &field, sizeof field);
      }
      constant.bytes = bytes;
    }
    return jit::compile_x86(request);
  }

  const std::shared_ptr<jit::CodeBackend> ptx_;
  FakeDriver& driver_;
  LaunchedBlocks& blocks_;
  jit::CodeLoader loader_;
};

// Nothing was done wrong and nothing is left when it goes.
class FakeGpu {
 public:
  explicit FakeGpu(const Options& options = {}) : driver(options) {
    device = cuda::make_device(driver.table(), {.wrap_backend = [this](auto ptx) {
                                 return std::make_shared<RunningBackend>(std::move(ptx), driver, blocks);
                               }});
  }
  ~FakeGpu() {
    device.reset();
    EXPECT_EQ(driver.report(), "");
  }
  FakeGpu(const FakeGpu&) = delete;

  LaunchedBlocks blocks;
  FakeDriver driver;
  IntrusivePtr<Device> device;
};

}  // namespace coppice::fake
