// Loops on oneTBB: tasks of at least Launch::grain items on the device's arena.
#pragma once
#include <tbb/task_arena.h>

#include <mutex>

#include "gpu/cpu/host_stream_backend.h"
#include "gpu/cpu/kernel_fibers.h"

namespace coppice {

class TbbStreamBackend final : public HostStreamBackend {
 public:
  // All belong to the device, which outlives its streams' threads. `one_loop` is that of a device of one
  // thread, else null: no two loops of its streams run at once, on which sums rely (coppice_is_alone). An
  // arena of one thread would not do: oneTBB lets two enter it.
  TbbStreamBackend(tbb::task_arena& arena, std::mutex* one_loop, bool deterministic, MessageLog& log)
      : HostStreamBackend(log),
        arena_(arena),
        one_loop_(one_loop),
        deterministic_(deterministic),
        fibers_(arena.max_concurrency()) {}
  void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) override;
  void run_function(const std::function<void()>& function) override;

 private:
  tbb::task_arena& arena_;
  std::mutex* const one_loop_;
  const bool deterministic_;  // launches whose result depends on the order of their items run on one thread
  KernelFibers fibers_;
};

}  // namespace coppice
