// Tells which threads do work that others wait for: there, wait() is refused (core/async_value_base.h).
//
//   what runs                                   set by                     never ends there
//   a task of a work queue, blocking or not     executor/work_queue.h      wait(), wait_idle(), shutdown()
//   a stream's operations and continuations     gpu/stream_queue.cc        the same
//   compilations and their continuations        gpu/kernel_store.cc        the same, and wait_for_code()
//
// It is here because wait() is. A simulation's thread (apps/viewer/) is none of these:
// what it waits for is done by them.
#pragma once

namespace coppice {

class WorkerThreadScope {
 public:
  // Until the scope ends the calling thread does work of `owner`, a tag that is only compared (null: of
  // nobody). `name` is for the message of a refused wait(). Scopes nest.
  explicit WorkerThreadScope(const void* owner, const char* name = "a worker thread") : outer_(current_) {
    current_ = {owner, name};
  }
  ~WorkerThreadScope() { current_ = outer_; }
  WorkerThreadScope(const WorkerThreadScope&) = delete;
  WorkerThreadScope& operator=(const WorkerThreadScope&) = delete;

  // Return the owner and name of the innermost scope of the calling thread, or null.
  static const void* current_owner() { return current_.owner; }
  static const char* current_name() { return current_.name; }

 private:
  struct Work {
    const void* owner;
    const char* name;
  };
  // This is thread-local, since wait() asks for a property of the thread, however deep in the task.
  static inline constinit thread_local Work current_ = {nullptr, nullptr};
  const Work outer_;
};

inline bool is_worker_thread() { return WorkerThreadScope::current_owner() != nullptr; }

// This is a failed check on a worker thread; `call` is what waits: "wait()".
void check_may_wait(const char* call);

}  // namespace coppice
