// The executor's work runs here: on compute threads (oneTBB) if it computes, on other threads if it
// blocks.
//
//   auto queue = WorkQueue::create({.threads = 4});
//   queue->add(source, priority, [] { ... });       // soon, on a compute thread
//   queue->add_blocking([] { read a file });        // on a thread that may block
//   queue->wait_idle();                             // host only
//   queue->shutdown(WorkQueue::Shutdown::kDrain);   // also what the destructor does
//
// Fairness: tasks belong to sources (a running function is one). A free thread takes the next source
// in turn, and of it the task with the highest priority, the latest first among equals. Blocking
// tasks run in order of their coming.
//
// A thread that runs a task of a queue may call neither wait() nor this queue's or another's wait_idle()
// or shutdown(): each is a failed check there, as on the threads of streams and of the compiler
// (core/worker_thread.h). (The bodies of a task's own oneTBB loops are on threads that do not know of the
// task.) The last reference may be dropped anywhere; on such a thread the destructor does not wait, and
// the queue's threads finish what is queued and end by themselves. When the process ends, exit() waits
// for the tasks that are running (for at most 10 s) before anything static is destroyed; what is queued
// then is destroyed unrun, and no more is taken. Whatever is called in a forked child, but the
// destructor and remove_timer(), is a failed check; of a queue that the child makes itself, add() is one, for
// oneTBB's threads stayed in the process that it was forked from.
//
// Thread-safe. Nothing here throws but std::bad_alloc; a task must not at all. Whatever a queue does with a
// task, it holds no lock meanwhile.
#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>

#include "core/intrusive_ptr.h"
#include "executor/task.h"

namespace coppice::executor {

class WorkQueue : public RefCounted {
 public:
  struct Options {
    int threads = 0;            // compute threads, at least 0 (checked); 0: all cores
    int blocking_threads = 64;  // as many at most, at least 1 (checked); started when needed
  };
  enum class Shutdown { kDrain, kDrop };  // run what is queued, or destroy it unrun
  using Clock = std::chrono::steady_clock;
  // Names a task of add_at(); the earlier one is less. It is false where it names none.
  struct Timer {
    Clock::time_point when;
    uint64_t number = 0;  // 0: none
    explicit operator bool() const { return number != 0; }
    auto operator<=>(const Timer&) const = default;
  };

  static IntrusivePtr<WorkQueue> create(const Options& options);
  static IntrusivePtr<WorkQueue> create() { return create(Options{}); }
  ~WorkQueue() override = default;

  // Returns false (add_at(): no timer), with the task destroyed unrun, after shutdown() began (tasks of this
  // queue that are being drained may still add); add_blocking() and add_at() also, with a line in the log,
  // when the system gives no thread to run it.
  virtual bool add(uint64_t source, uint32_t priority, Task task) = 0;
  virtual bool add_blocking(Task task) = 0;
  // Runs the task at `when` or soon after. Such tasks run one after the other in the order of their
  // times, on a thread that has nothing else to do, also while every compute thread is busy: this is for
  // deadlines. From shutdown() on, of either kind, tasks that are not due are destroyed unrun, and no
  // more are taken.
  virtual Timer add_at(Clock::time_point when, Task task) = 0;
  // Destroys a task of add_at() unrun. False: it has begun, or is gone already. May be called in a forked
  // child, where it does nothing: an object that goes there may have timers.
  virtual bool remove_timer(const Timer& timer) = 0;

  virtual int threads() const = 0;
  // Returns whether the calling thread is running a task of any queue.
  static bool is_worker_thread();
  // Returns whether compute threads may soon find nothing to do. This is a hint, without a lock: a thread
  // that has cheap tasks to give keeps them for itself while this is false.
  virtual bool is_short_of_work() const = 0;
  // Returns whether the calling thread is running a compute task of this queue.
  virtual bool is_compute_thread() const = 0;
  // Blocks until nothing is queued or running (timers that are not due aside). Must not be called on a
  // worker thread.
  virtual void wait_idle() = 0;
  // Blocks until no thread runs a task of this queue any more, and its threads have ended. Is called
  // once, and not on a worker thread. Tasks that are dropped are destroyed on the calling thread.
  virtual void shutdown(Shutdown how) = 0;
};

}  // namespace coppice::executor
