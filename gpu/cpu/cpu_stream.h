// Streams whose queue is the host's: one thread per stream takes operations in order. How it runs the loop of a launch
// is the device's choice (loop_runner.h).
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "gpu/cpu/loop_runner.h"
#include "gpu/launch_profile.h"
#include "gpu/stream.h"

namespace coppice {

class CpuStream final : public Stream {
 public:
  // `context`, and what `runner` refers to, belong to the device, which outlives its streams' threads.
  CpuStream(std::unique_ptr<LoopRunner> runner, DeviceContext& context, std::string name);
  // Finishes what is queued. May run on the stream's own thread: an operation can hold the last reference to a device.
  ~CpuStream() override;

  AsyncValueRef<Chain> launch(Launch launch) override;
  AsyncValueRef<Chain> launch(IntrusivePtr<const SharedLaunch> launch) override;
  AsyncValueRef<Chain> enqueue(std::string_view name, std::function<void()> function) override;
  AsyncValueRef<Chain> copy(void* to, const void* from, size_t bytes) override;
  AsyncValueRef<Chain> fill(void* to, int byte, size_t bytes) override;
  AsyncValueRef<Chain> barrier() override;
  void clear_error() override;
  void run_inline(Launch& launch) override;
  void wait_copy_inline(void* to, const void* from, size_t bytes) override;

 private:
  struct Operation {
    std::string_view name;
    std::function<void()> function;  // empty: the launch is run
    IntrusivePtr<const SharedLaunch> shared_launch;
    AsyncValueRef<Chain> done;
    uint64_t epoch;  // how many times errors had been cleared when it was queued
  };
  AsyncValueRef<Chain> push(std::string_view name, std::function<void()> function,
                            IntrusivePtr<const SharedLaunch> launch = nullptr);
  void run(const Operation& operation);
  void run(const Launch& launch, LaunchBlock& block);
  void work(std::string name);
  // The front of the queue; `lock` holds mutex_ before and, unless the operation destroyed this stream (false), after.
  bool run_next(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<LoopRunner> runner_;
  DeviceContext& context_;
  uint64_t launches_ = 0;  // that were not skipped, nor the runtime's own; of the stream's thread
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Operation> queue_;
  std::optional<Error> error_;  // guarded by mutex_, as the rest is
  uint64_t error_epoch_ = 0;    // operations queued in this epoch are skipped while there is an error
  uint64_t epoch_ = 0;
  bool stopping_ = false;
  LaunchProfile profile_;      // of the stream's thread
  bool* destroyed_ = nullptr;  // the worker's own flag; set by a destructor that runs on the worker
  std::thread thread_;
};

}  // namespace coppice
