// The process's bound launches whose kernels may be replaced while it runs (sparse/kernel_reload.h).
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "core/process_end.h"
#include "gpu/kernel_versions.h"
#include "sparse/program.h"

namespace coppice {

namespace detail {

// Holds what the copies of a BoundLaunch share.
struct Bound {
  IntrusivePtr<Device> device;
  const ForkGuard guard = {};
  mutable std::mutex mutex;  // of `launch`: another thread may give it while it is replaced
  IntrusivePtr<const SharedLaunch> launch;
  // The launch is made anew from this, for `options`; it is null where the kernel and its arguments stay as
  // they are.
  std::unique_ptr<const LaunchRequest> request;
  CodegenOptions options;
  const KernelVersion* version = nullptr;  // of its kernel's file that `launch` has

  void replace(Launch with, const KernelVersion* now);
};

}  // namespace detail

class BoundLaunches {
 public:
  // Keeps what the launch is made of where it may have to be made anew. Thread-safe.
  static void add(const std::shared_ptr<detail::Bound>& bound, const detail::LaunchRequest& request,
                  const CodegenOptions& options);
  static std::vector<std::shared_ptr<detail::Bound>> all();
  // Gives a launch that keeps what its arguments point to.
  static AsyncValueRef<Chain> give(Program& program, const detail::LaunchRequest& request) {
    return program.give(request);
  }
  // Returns the same launch with the temporaries among its arguments where they lie now.
  static BoundLaunch at_places(const BoundLaunch& launch);
  // Returns the launch with another version of its kernel, which begins to be compiled.
  static Launch prepare_at(const detail::Bound& bound, const KernelVersion* version);
  // Takes over the version that stands for its kernel's file now; waits until that is compiled.
  static void wait_renew(detail::Bound& bound);
};

}  // namespace coppice
