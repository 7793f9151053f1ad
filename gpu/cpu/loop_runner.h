// Streams that run their operations at once, in the host's memory: those of the cpu device and of the emulated GPU. How
// the loop of a launch is run is the only thing in which they differ.
#pragma once
#include "gpu/stream_executor.h"

namespace coppice {

class MessageLog;

class LoopRunner : public StreamExecutor {
 public:
  explicit LoopRunner(MessageLog& log) : log_(log) {}  // the device's
  // Items [0, count), count > 0; may throw Error.
  virtual void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) = 0;

  void run_loop(const Launch& launch, const LaunchBlock& block) final;
  void copy(void* to, const void* from, size_t bytes) final { wait_copy(to, from, bytes); }
  void fill(void* to, int byte, size_t bytes) final;
  void wait_copy(void* to, const void* from, size_t bytes) final;
  void wait_begun() final {}
  bool has_status(const DeviceContext& context) final;
  // Reads what kernels printed; not sooner: a launch that is repeated forgets it.
  bool mark_end(std::string_view name, DeviceContext& context, Kept& let_go) final;
  bool reach_oldest_mark(bool wait, Kept& let_go) final;

 private:
  MessageLog& log_;
};

}  // namespace coppice
