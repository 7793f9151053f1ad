// Which threads are running a task of a work queue: there, wait() is refused (core/async_value_base.h).
//
// The queues set it (executor/work_queue.h); it is here because wait() is.
#pragma once

namespace coppice {

class WorkerThreadScope {
 public:
  // The calling thread runs a task of `queue`, a tag that is only compared, until the scope ends. Scopes nest.
  explicit WorkerThreadScope(const void* queue) : outer_(queue_) { queue_ = queue; }
  ~WorkerThreadScope() { queue_ = outer_; }
  WorkerThreadScope(const WorkerThreadScope&) = delete;
  WorkerThreadScope& operator=(const WorkerThreadScope&) = delete;

  // The queue of the innermost scope of the calling thread, or null.
  static const void* current_queue() { return queue_; }

 private:
  // Thread-local, since it is a property of the thread that wait() asks for, however deep in the task.
  static inline constinit thread_local const void* queue_ = nullptr;
  const void* outer_;
};

inline bool is_worker_thread() { return WorkerThreadScope::current_queue() != nullptr; }

}  // namespace coppice
