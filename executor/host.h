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

#include "core/process_end.h"
#include "executor/pending_events.h"
#include "executor/work_queue.h"
#include "gpu/stream.h"

namespace coppice::executor {

class Request;

// A request has begun this and not ended it: a function with operations that wait, or a loop or branch
// that waits. The struct is a base class, and a node of the request's list.
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
  // Functions allocate from here what they make. If it is capped (capped_memory.h), a result that does
  // not fit is an error. Async values themselves, and what the executor needs, come from its own pools.
  std::pmr::memory_resource& memory() const { return memory_; }
  // `stream` is where the operations of this request that use a device put their work.
  IntrusivePtr<Request> start_request(IntrusivePtr<Stream> stream = nullptr);
  // Returns one T for all operations of this host, made when it is first asked for.
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
  // The queue is the last member, so that it goes first when it is the host's alone: its tasks may use
  // shared objects until they have ended.
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
  // under way, are not interrupted. In a forked child of the process that has the host's queue nothing is
  // skipped: what waits is its parent's.
  void cancel();
  // cancel() at that time; of several deadlines the first counts. It keeps nothing alive: it goes with the
  // last reference to the request. False: it will not be cancelled then, since the queue was shut down or the
  // system gives no thread for deadlines (WorkQueue::add_at()). A failed check on a host without a queue.
  bool cancel_at(WorkQueue::Clock::time_point when);
  // Relaxed: cancelling orders nothing; an operation may just have started.
  bool is_cancelled() const { return (flags_.load(std::memory_order_relaxed) & kCancelled) != 0; }

  // Says which operations of this request wait for what, a line each; it is empty when all has run. It
  // serves to find out why a run does not come to its end, and the run may still go on: operations that
  // end meanwhile wait until this has returned. Errors: kUnavailable in a forked child of the process that
  // has the host's queue.
  std::string describe_waiting() const;

  // Suspended work is added and removed by the executor and the operations that run functions. False,
  // with nothing added: the request is cancelled, and work that would wait ends at once instead.
  bool add(Suspended& suspended);
  // False: it was not in the list. If several threads want to end suspended work, one of them removes it.
  bool remove(Suspended& suspended);
  PendingEvents& pending_events() { return pending_events_; }

  // Operations that start look at these flags, which are almost always 0.
  static constexpr uint32_t kCancelled = 1;
  static constexpr uint32_t kDescribed =
      2;  // describe_waiting() is looking at what operations have as arguments
  // Acquire: an argument that describe_waiting() looked at may be freed once it has cleared its flag.
  uint32_t flags() const { return flags_.load(std::memory_order_acquire); }
  void wait_described() const { const std::lock_guard lock(mutex_); }

 private:
  void release_resources() override;
  // A thread of the parent may have held the lock when this process was forked.
  bool is_parents() const { return guard_.is_in_child() && host_->queue() != nullptr; }

  const ForkGuard guard_;
  IntrusivePtr<Host> host_;  // these two are never changed while there is a reference
  IntrusivePtr<Stream> stream_;
  const uint64_t source_;
  mutable std::atomic<uint32_t> flags_{0};
  PendingEvents pending_events_;
  mutable std::mutex mutex_;
  Suspended* suspended_ = nullptr;  // guarded by mutex_, as is the next
  WorkQueue::Timer deadline_;       // the first of those that were given
};

}  // namespace coppice::executor
