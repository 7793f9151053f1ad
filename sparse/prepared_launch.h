// Prepares launches: binds and compiles once what is the same from launch to launch, and fills in the rest.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "gpu/codegen_options.h"
#include "gpu/device.h"
#include "gpu/kernel_store.h"
#include "gpu/launch_uses.h"
#include "sparse/binding.h"
#include "sparse/launch_errors.h"
#include "sparse/launch_request.h"
#include "sparse/memory_uses.h"

namespace coppice {

struct KernelVersion;

// Holds what stays the same from launch to launch of one specialization.
struct Prepared final : public RefCounted {
  std::string name;
  std::vector<detail::HandleUse> handles;
  std::string loop_path;  // of the node looped over
  Binding binding;
  IntrusivePtr<LaunchUses> uses;
  // Says why the launch must not be repeated, and what stands against making room for it; empty where it
  // may be.
  std::string why_not_repeatable;
  // This code makes room before the launch; it is null where no room is to be made, or where it cannot be.
  AsyncValueRef<LoadedCodeRef> room_code;
  // This is true on a CPU where the launch may run short of cells, and what it does must not happen twice.
  bool needs_full_ranges = false;
  std::vector<std::weak_ptr<const void>> livenesses;  // of the binding's trees
  AsyncValueRef<LoadedCodeRef> code;
  LaunchBlock block{};
  bool checks = false;
  const KernelVersion* version = nullptr;  // of the kernel's file
  uint64_t generation = 0;                 // when that was known to stand for it

  LaunchedKernel kernel(std::span<const TemporaryArgument> temporaries) const {
    return {name, handles, loop_path, *uses, binding.trees, temporaries};
  }
};

// Makes launches of one device, compiled with one set of options. Thread-compatible.
class LaunchMaker {
 public:
  LaunchMaker(IntrusivePtr<Device> device, const CodegenOptions& options);
  const IntrusivePtr<Device>& device() const { return device_; }
  const CodegenOptions& options() const { return options_; }
  // Binds the launch, and starts to compile it with that version of its kernel's file (null: the program's
  // own), whether or not that can be compiled.
  IntrusivePtr<Prepared> prepare(const detail::LaunchRequest& request, const KernelVersion* version) const;
  // Does the same with the latest version that can be compiled, which it waits for.
  IntrusivePtr<Prepared> wait_prepare_good(const detail::LaunchRequest& request,
                                           const KernelVersion* version) const;
  // Returns the launch with its arguments, which the stream takes.
  Launch launch_of(const detail::LaunchRequest& request, const IntrusivePtr<Prepared>& prepared);

 private:
  void start_compiling(const detail::LaunchRequest& request, Prepared& p) const;
  void wait_guard_memory(Launch& launch, const detail::LaunchRequest& request, const Prepared& p);

  const IntrusivePtr<Device> device_;
  const CodegenOptions options_;
  MemoryUseTables memory_uses_;  // of launches with checks
};

}  // namespace coppice
