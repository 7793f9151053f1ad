// Host and Request: what executing functions share, and what one run of a function carries with it.
//
//   auto host = make_intrusive<Host>(WorkQueue::create());
//   auto request = host->start_request();
//   auto results = execute(module->function("main"), arguments, *request);       // executor.h
//   request->cancel();                            // what has not started yet becomes kCancelled
//
// Thread-safe.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>

#include "executor/pending_events.h"
#include "executor/work_queue.h"
#include "gpu/stream.h"

namespace coppice::executor {

class Request;

// What a request has begun and not ended: a function with operations that wait, a loop or branch that does. A
// base, in a list of the request's.
struct Suspended {
  struct Type {
    void (*describe)(const Suspended& self, std::string& text);  // adds a line for each thing that waits
    // Counts a reference for cancel(). False where the last one has gone and self is about to leave the list.
    bool (*hold)(Suspended& self);
    // Completes what waits, with kCancelled, and gives the reference back.
    void (*cancel)(Suspended& self);
  };
  explicit Suspended(const Type& type) : type(type) {}
  const Type& type;
  Suspended *previous = nullptr, *next = nullptr;  // guarded by the request's mutex, as is_listed is
  bool is_listed = false;
};

class Host final : public RefCounted {
 public:
  // Without a queue everything runs on the thread that calls execute() or completes a value: for tests and
  // tools, and as deterministic as these calls are. `memory` outlives the host and all that its functions
  // make. Threads of the queue may hold some of that after the results have come, and keep the host alive:
  // queue()->wait_idle() or shutdown() comes before the memory goes.
  explicit Host(IntrusivePtr<WorkQueue> queue = nullptr,
                std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
      : memory_(memory), queue_(std::move(queue)) {}

  WorkQueue* queue() const { return queue_.get(); }
  // Where functions get the memory of what they make: one that is capped (capped_memory.h) makes an error of
  // what does not fit. Async values themselves, and what the executor needs, come from its own pools.
  std::pmr::memory_resource& memory() const { return memory_; }
  // `stream` is where the operations of this request that use a device put their work.
  IntrusivePtr<Request> start_request(IntrusivePtr<Stream> stream = nullptr);
  // One T for all operations of this host, made when it is first asked for.
  template <class T>
  T& shared() {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<void>& object = shared_[typeid(T)];
    if (!object) object = std::make_shared<T>();
    return *static_cast<T*>(object.get());
  }

 private:
  std::pmr::memory_resource& memory_;
  std::mutex mutex_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> shared_;
  std::atomic<uint64_t> next_source_{1};
  // Last, so that it goes first when it is the host's alone: its tasks may use what
  // is shared until they have ended.
  const IntrusivePtr<WorkQueue> queue_;
};

class Request final : public RefCounted {
 public:
  Request(IntrusivePtr<Host> host, IntrusivePtr<Stream> stream, uint64_t source);
  ~Request() override;

  Host& host() const { return *host_; }
  WorkQueue* queue() const { return host_->queue(); }
  // Null unless the request was started with one.
  Stream* stream() const { return stream_.get(); }
  uint64_t source() const { return source_; }  // of tasks, for the queue's fairness

  // Operations that have not started are skipped, with the error kCancelled: those that wait, and loops
  // and branches that do, on the calling thread, before this returns. Those that run, or have something
  // under way, are not interrupted.
  void cancel();
  // cancel() at that time. False: it will not be cancelled then, since the queue was shut down or the system
  // gives no thread for deadlines (WorkQueue::add_at()). A failed check on a host without a queue.
  bool cancel_at(WorkQueue::Clock::time_point when);
  // Relaxed: cancelling orders nothing; an operation may just have started.
  bool is_cancelled() const { return (flags_.load(std::memory_order_relaxed) & kCancelled) != 0; }

  // Which operations of this request wait for what, a line each; empty when all has run. For a
  // run that does not come to its end; it may be one that still goes on. Operations that end
  // meanwhile wait until this has returned.
  std::string describe_waiting() const;

  // For the executor and the operations that run functions.
  // False, with nothing added: the request is cancelled, and what would wait ends at once instead.
  bool add(Suspended& suspended);
  // False: it was not in the list. Of several that want to end what waits, one removes it.
  bool remove(Suspended& suspended);
  PendingEvents& pending_events() { return pending_events_; }

  // What operations that start look at: almost always 0.
  static constexpr uint32_t kCancelled = 1;
  static constexpr uint32_t kDescribed =
      2;  // describe_waiting() is looking at what operations have as arguments
  // Acquire: what describe_waiting() looked at may be freed once it has cleared its flag.
  uint32_t flags() const { return flags_.load(std::memory_order_acquire); }
  void wait_described() const { const std::lock_guard lock(mutex_); }

 private:
  const IntrusivePtr<Host> host_;
  const IntrusivePtr<Stream> stream_;
  const uint64_t source_;
  mutable std::atomic<uint32_t> flags_{0};
  PendingEvents pending_events_;
  mutable std::mutex mutex_;
  Suspended* suspended_ = nullptr;  // guarded by mutex_
};

}  // namespace coppice::executor
