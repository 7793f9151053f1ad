// A WorkQueue and its threads share this core. Internal to the queue.
//
//   add()           -> ready_ (ready_tasks.h) -> jobs of the arena, at most one per compute thread, each of which runs
//                                                what is next until nothing is, or until it is another arena's turn
//   add_blocking()  -> blocking_, a FIFO      -> threads of our own
//   add_at()        -> timers_, by their times -> one thread, which runs what is due
//
//   kOpen --shutdown(kDrain)--> kDraining --nothing unfinished--> kClosed
//     |----shutdown(kDrop)------------------------------------------^
//
// When the process ends (core/process_end.h) whatever has not begun is dropped, in any of these states, and
// nothing more is taken; exit() waits for what is running.
//
// One mutex guards everything; no task is run, destroyed, or moved to the arena under it. The core goes
// when its queue does and no job or thread is left, which are counted: shutdown() waits for that. A queue
// that is destroyed on a worker thread, or while the process ends, cannot wait; its core drains by itself,
// and who leaves it last deletes it.
#pragma once
#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/process_end.h"
#include "core/trace.h"
#include "executor/ready_tasks.h"
#include "executor/work_queue.h"
#include "gpu/cpu/worker_limit.h"

namespace coppice::executor {

class WorkQueueCore {
 public:
  explicit WorkQueueCore(const WorkQueue::Options& options);

  bool add(uint64_t source, uint32_t priority, Task task);
  bool add_blocking(Task task);
  WorkQueue::Timer add_at(WorkQueue::Clock::time_point when, Task task);
  bool remove_timer(const WorkQueue::Timer& timer);
  int threads() const { return threads_; }
  bool is_compute_thread() const;
  // Two tasks a thread are enough: one that runs when the present one ends, and one more while it is
  // replaced.
  bool is_short_of_work() const {
    return num_ready_.load(std::memory_order_relaxed) < 2 * static_cast<size_t>(threads_);
  }
  bool is_open();
  bool is_ending() const { return is_ending_.load(std::memory_order_relaxed); }
  bool is_in_child() const { return guard_.is_in_child(); }
  // True if it was shut down while the process ended: threads that nobody waits for may still use it.
  bool is_left_behind() const { return is_left_behind_; }
  void wait_idle();
  void shutdown(WorkQueue::Shutdown how);
  // Drains, then deletes this, without blocking the caller.
  void abandon();

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class State { kOpen, kDraining, kClosed };
  struct Dropped;  // tasks that do not run
  using Timers = std::map<WorkQueue::Timer, Task>;

  bool accepts() const;  // a task of the calling thread
  void run(Task task, Lock& lock, bool may_block = false);
  void finish(size_t tasks);
  void close();
  // Is called with mutex_ held. The caller destroys what it returns without the mutex.
  Dropped take_all();
  // Is called when the process ends; the function that it returns destroys the dropped tasks.
  std::function<void()> let_go();
  // The caller, counted in members_, touches nothing of this afterwards.
  void leave(Lock lock);

  void push_ready(uint64_t source, uint32_t priority, Task task, Lock lock);
  void enqueue_job();
  void run_job();

  bool ensure_blocking_thread();
  void work_blocking(int index);
  bool ensure_timer_thread();
  void work_timers();
  void detach_threads();
  bool start_thread(std::thread& thread, void (*body)(WorkQueueCore*, int), int index);

  const ForkGuard guard_;
  const int threads_, most_blocking_threads_;
  WorkerClaim workers_;
  tbb::task_arena arena_;

  std::mutex mutex_;
  State state_ = State::kOpen;
  bool is_abandoned_ = false, is_left_behind_ = false;
  std::atomic<bool> is_ending_{false};  // with the process; written under the mutex
  size_t unfinished_ = 0;               // tasks that are queued or running
  int members_ = 0;                     // jobs_, and threads that were started and have not ended
  std::condition_variable idle_;

  ReadyTasks ready_;
  std::atomic<size_t> num_ready_{0};  // relaxed, written under the mutex: a hint for those who do not take it
  int jobs_ = 0;                      // in the arena, waiting or running
  // Each running job has a row, "compute 0" and so on: oneTBB's workers come and go, and its slots may be
  // more than threads_.
  std::vector<TraceRow> rows_;
  std::vector<int> free_rows_;

  std::deque<Task> blocking_;
  size_t idle_blocking_threads_ = 0;
  std::vector<std::thread> blocking_threads_;
  std::condition_variable blocking_added_;

  Timers timers_;
  uint64_t last_timer_ = 0;
  std::thread timer_thread_;
  std::condition_variable timers_changed_;
  const ProcessEndWatch watch_;  // last: it uses the above
};

}  // namespace coppice::executor
