// Loops on oneTBB: tasks of at least Launch::grain items on the device's arena.
#pragma once
#include <tbb/task_arena.h>

#include "gpu/cpu/host_stream_backend.h"
#include "gpu/cpu/kernel_fibers.h"

namespace coppice {

class TbbStreamBackend final : public HostStreamBackend {
 public:
  // `arena` and `log` belong to the device, which outlives its streams' threads.
  TbbStreamBackend(tbb::task_arena& arena, bool deterministic, MessageLog& log)
      : HostStreamBackend(log),
        arena_(arena),
        deterministic_(deterministic),
        fibers_(arena.max_concurrency()) {}
  void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) override;
  void run_function(const std::function<void()>& function) override;

 private:
  tbb::task_arena& arena_;
  const bool deterministic_;  // launches whose result depends on the order of their items run on one thread
  KernelFibers fibers_;
};

}  // namespace coppice
