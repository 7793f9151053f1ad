// Streams of the cpu device: one thread per stream takes operations in order and runs launches on the device's arena.
#pragma once
#include <tbb/task_arena.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "gpu/stream.h"

namespace coppice {

class CpuStream final : public Stream {
 public:
  // `arena` and `context` belong to the device, which outlives its streams' threads.
  CpuStream(tbb::task_arena& arena, DeviceContext& context, std::string name);
  ~CpuStream() override;  // finishes what is queued

  AsyncValueRef<Chain> launch(Launch launch) override;
  AsyncValueRef<Chain> enqueue(std::string_view name, std::function<void()> function) override;
  AsyncValueRef<Chain> copy(void* to, const void* from, size_t bytes) override;
  AsyncValueRef<Chain> fill(void* to, int byte, size_t bytes) override;
  AsyncValueRef<Chain> barrier() override;
  void clear_error() override;
  void run_inline(Launch& launch) override;

 private:
  struct Operation {
    std::string_view name;
    std::function<void()> run;
    AsyncValueRef<Chain> done;
  };
  AsyncValueRef<Chain> push(std::string_view name, std::function<void()> run);
  void work();

  tbb::task_arena& arena_;
  DeviceContext& context_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Operation> queue_;
  std::optional<Error> error_;  // guarded by mutex_
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace coppice
