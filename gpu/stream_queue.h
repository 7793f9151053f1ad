// The queue of a stream: one thread per stream takes operations in order, and a back end (stream_backend.h)
// does them.
//
// An operation's work may be under way when its turn is over (a GPU's): its async value becomes available
// when the back end's mark behind it is reached, values in the order of the operations. The stream's own
// thread looks for that whenever it has nothing to begin, and not a second thread that waits for the device:
// continuations, what an operation held and, with it, perhaps the stream itself are then let go by one
// thread, as on a CPU. It polls, so that what is queued meanwhile is begun at once and the device does not
// run dry.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/process_end.h"
#include "gpu/launch_profile.h"
#include "gpu/stream_backend.h"
#include "gpu/stream_order.h"

namespace coppice {

class StreamQueue final : public Stream {
 public:
  // `context` (an address of the device's), and what `backend` refers to, live until the stream's thread
  // ends: a stream that is not the device's own keeps the device.
  StreamQueue(std::unique_ptr<StreamBackend> backend, DeviceContext& context, std::string name,
              IntrusivePtr<RefCounted> device = {});
  // Finishes what is queued. May run on the stream's own thread: an operation can hold the last reference to
  // a device. When the process ends (core/process_end.h), what is queued then, or is given
  // later, gets the error kCancelled.
  ~StreamQueue() override;

  AsyncValueRef<Chain> launch(Launch launch) override;
  AsyncValueRef<Chain> launch(IntrusivePtr<const SharedLaunch> launch) override;
  AsyncValueRef<Chain> enqueue(std::string_view name, std::function<void(InStream&)> function) override;
  AsyncValueRef<Chain> issue(std::string_view name, std::function<void(InStream&)> function) override;
  AsyncValueRef<Chain> copy(void* to, const void* from, size_t bytes) override;
  AsyncValueRef<Chain> fill(void* to, int byte, size_t bytes) override;
  AsyncValueRef<Chain> barrier() override;
  void clear_error() override;
  uint64_t errors_cleared() const override { return epoch_.load(std::memory_order_relaxed); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Operation {
    std::string_view name;
    std::function<void(InStream&)>
        function;  // null where it is a launch, or nothing but a place in the order
    IntrusivePtr<const SharedLaunch> launch;
    AsyncValueRef<Chain> done;
    AsyncValueRef<IntrusivePtr<LoadedCode>> code, room_code;  // of a launch
    bool waits = false;  // is begun when everything before it is done: the host looks at what that did
    uint64_t epoch = 0;  // how many times errors had been cleared when it was queued
    // These are set once it has begun:
    std::unique_ptr<LaunchEnd> unsettled;
    bool marked = false;
    std::optional<Error> failed;
    bool tells_error = false;  // the stream's error, at its end: it failed behind a launch that was unsettled
    StreamBackend::KeepAlive used;
  };
  AsyncValueRef<Chain> push(Operation operation);
  void run(Operation& operation);
  void work(std::string name);
  bool can_begin() const;
  bool can_begin_behind_unsettled(const Operation& next) const;
  bool has_work() const { return !queue_.empty() || !pending_.empty(); }
  // Begins the next operation or ends the oldest of those begun. Like the three below: `lock` holds mutex_
  // before and, unless what was let go destroyed this stream (false), after.
  bool step(Lock& lock);
  bool begin_next(Lock& lock);
  // Leaves without having ended it when there is something to begin.
  bool wait_oldest(Lock& lock);
  bool end(Lock& lock, Operation operation);
  bool end_oldest(Lock& lock);
  bool reach_oldest(Lock& lock, bool wait);
  bool settle(Lock& lock, Operation& oldest);
  void wait_unbegin(Operation& operation);
  void set_error(const Error& error, uint64_t epoch);                 // with mutex_ held
  void note_error(const Error& error, uint64_t epoch, bool is_told);  // with mutex_ held
  void log_untold() const;
  std::string describe_overtaken() const;

  const IntrusivePtr<RefCounted> device_;  // first: what follows uses it
  const ForkGuard guard_;
  const std::unique_ptr<StreamBackend> backend_;
  DeviceContext& context_;
  DirectOrder order_;  // of the stream's thread
  std::mutex mutex_;
  ThreadsCondition ready_;
  std::deque<Operation> queue_;
  std::optional<Error> error_;  // guarded by mutex_, as the rest is
  uint64_t error_epoch_ = 0;    // operations queued in this epoch are skipped while there is an error
  std::atomic<uint64_t> epoch_ = 0;
  std::optional<Error> untold_;      // an error of this epoch whose value nobody had
  std::optional<uint64_t> told_in_;  // the last epoch in which somebody had the value of an error
  bool stopping_ = false;
  bool is_ending_ = false, has_left_ = false;  // with the process: its thread is to leave, or has left
  std::deque<Operation> pending_;              // begun and not ended; of the stream's thread, as what follows
  size_t num_unsettled_ = 0;                   // of these
  LaunchProfile profile_;
  bool* destroyed_ =
      nullptr;  // set by a destructor that runs on the worker; null but where an operation is let go
  ProcessEndWatch watch_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace coppice
