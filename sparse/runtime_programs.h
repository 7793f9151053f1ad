// The programs that launch the runtime's own kernels for a tree.
#pragma once
#include <mutex>
#include <utility>

#include "gpu/device.h"
#include "sparse/program.h"

namespace coppice {

class RuntimePrograms {
 public:
  explicit RuntimePrograms(const IntrusivePtr<Device>& device);

  // Returns f(program) with the program for threads that give launches; these threads come one after another.
  template <class F>
  auto with_host(F&& f) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(f)(host_);
  }
  // Returns the program of what runs in the stream's order.
  Program& in_order(InStream&) { return in_order_; }

 private:
  friend struct TreeParts;  // which run only in that order
  std::mutex mutex_;
  Program host_, in_order_;
};

// Starts to compile the kernels that trees' first launches need.
void compile_runtime_kernels(Program& program, device::TreeState* state);

}  // namespace coppice
