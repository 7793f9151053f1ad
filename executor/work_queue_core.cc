// Compute tasks, and how a queue ends (see work_queue_core.h).
#include "executor/work_queue_core.h"

#include <fmt/format.h>
#include <tbb/info.h>

#include <algorithm>
#include <utility>

#include "core/worker_thread.h"

namespace coppice::executor {
namespace {
// A job joins the arena's line again after this many tasks: oneTBB moves a worker between arenas only
// between jobs.
constexpr int kTasksPerJob = 32;

const WorkQueue::Options& checked(const WorkQueue::Options& options) {
  COPPICE_CHECK(options.threads >= 0, "a work queue has so many compute threads, or 0: as many as cores");
  COPPICE_CHECK(options.blocking_threads >= 1, "a work queue has at least one thread for what blocks");
  return options;
}
}  // namespace

struct WorkQueueCore::Dropped {
  ReadyTasks ready;
  std::deque<Task> blocking;
  Timers timers;
};

WorkQueueCore::WorkQueueCore(const WorkQueue::Options& options)
    : threads_(checked(options).threads > 0 ? options.threads : tbb::info::default_concurrency()),
      most_blocking_threads_(options.blocking_threads),
      workers_(threads_),
      arena_(threads_, 0),
      watch_([this] { return let_go(); }) {
  for (int i = 0; i < threads_; ++i) {
    rows_.emplace_back(fmt::format("compute {}", i));
    free_rows_.push_back(threads_ - 1 - i);
  }
}

bool WorkQueueCore::accepts() const {
  if (is_ending()) return false;
  if (state_ != State::kDraining) return state_ == State::kOpen;
  return is_compute_thread() || WorkerThreadScope::current_owner() == &blocking_;
}

bool WorkQueueCore::is_compute_thread() const { return WorkerThreadScope::current_owner() == this; }

bool WorkQueueCore::is_open() {
  const std::lock_guard lock(mutex_);
  return state_ == State::kOpen;
}

bool WorkQueueCore::add(uint64_t source, uint32_t priority, Task task) {
  Lock lock(mutex_);
  if (!accepts()) return false;  // the lock ends before the task does
  push_ready(source, priority, std::move(task), std::move(lock));
  return true;
}

void WorkQueueCore::push_ready(uint64_t source, uint32_t priority, Task task, Lock lock) {
  ready_.push(source, priority, std::move(task));
  num_ready_.store(ready_.size(), std::memory_order_relaxed);
  ++unfinished_;
  if (jobs_ == threads_) return;
  ++jobs_, ++members_;
  lock.unlock();  // the job counted above keeps this alive
  enqueue_job();
}

void WorkQueueCore::enqueue_job() {
  const ExitHold hold;  // oneTBB is there while it is given the job
  if (hold.comes_too_late()) return;
  arena_.enqueue([this] {
    const ExitHold hold;
    if (!hold.comes_too_late()) run_job();
  });
}

void WorkQueueCore::run_job() {
  Lock lock(mutex_);
  const int row = free_rows_.back();
  free_rows_.pop_back();
  {
    const TraceRowScope scope(rows_[row]);
    for (int n = 0; n < kTasksPerJob && !ready_.empty(); ++n) {
      Task task = ready_.pop();
      num_ready_.store(ready_.size(), std::memory_order_relaxed);
      run(std::move(task), lock);
    }
  }
  free_rows_.push_back(row);
  if (ready_.empty()) {
    --jobs_;
    leave(std::move(lock));
    return;
  }
  lock.unlock();
  enqueue_job();
}

void WorkQueueCore::run(Task task, Lock& lock, bool may_block) {
  lock.unlock();
  {
    // The scope's tag says which kind of thread this is.
    const WorkerThreadScope scope(may_block ? static_cast<const void*>(&blocking_) : this);
    task();
  }
  lock.lock();
  finish(1);
}

void WorkQueueCore::finish(size_t tasks) {
  unfinished_ -= tasks;
  if (unfinished_ > 0) return;
  idle_.notify_all();
  if (is_abandoned_) close();
}

void WorkQueueCore::close() {
  state_ = State::kClosed;
  blocking_added_.notify_all();
  timers_changed_.notify_all();
}

void WorkQueueCore::leave(Lock lock) {
  if (--members_ > 0) return;
  const bool is_last = is_abandoned_ && state_ == State::kClosed;
  idle_.notify_all();
  lock.unlock();
  if (is_last) delete this;
}

void WorkQueueCore::wait_idle() {
  Lock lock(mutex_);
  idle_.wait(lock, [&] { return unfinished_ == 0; });
}

WorkQueueCore::Dropped WorkQueueCore::take_all() {
  num_ready_.store(0, std::memory_order_relaxed);
  return {std::exchange(ready_, {}), std::exchange(blocking_, {}), std::exchange(timers_, {})};
}

std::function<void()> WorkQueueCore::let_go() {
  const Lock lock(mutex_);
  is_ending_.store(true, std::memory_order_relaxed);
  auto dropped = std::make_shared<Dropped>(take_all());
  finish(dropped->ready.size() + dropped->blocking.size());
  blocking_added_.notify_all();
  timers_changed_.notify_all();
  return [dropped = std::move(dropped)]() mutable { dropped.reset(); };
}

void WorkQueueCore::shutdown(WorkQueue::Shutdown how) {
  Dropped dropped;
  Lock lock(mutex_);
  COPPICE_CHECK(state_ == State::kOpen, "a work queue is shut down once");
  state_ = State::kDraining;
  if (how == WorkQueue::Shutdown::kDrop) {
    state_ = State::kClosed;
    dropped = take_all();
  } else {
    std::swap(dropped.timers, timers_);
  }
  const size_t unrun = dropped.ready.size() + dropped.blocking.size();
  lock.unlock();
  dropped = {};
  lock.lock();
  finish(unrun);
  idle_.wait(lock, [&] { return unfinished_ == 0; });
  close();
  if (is_ending()) {  // jobs that come too late do not leave
    is_left_behind_ = true;
    return detach_threads();
  }
  // Threads leave before they are joined; a job leaves before only oneTBB knows of it.
  idle_.wait(lock, [&] { return members_ == 0; });
  lock.unlock();
  for (std::thread& thread : blocking_threads_) thread.join();
  if (timer_thread_.joinable()) timer_thread_.join();
}

void WorkQueueCore::detach_threads() {
  for (std::thread& thread : blocking_threads_) thread.detach();
  if (timer_thread_.joinable()) timer_thread_.detach();
}

void WorkQueueCore::abandon() {
  Timers timers;
  Lock lock(mutex_);
  COPPICE_CHECK(state_ == State::kOpen);
  state_ = State::kDraining;
  is_abandoned_ = true;
  std::swap(timers, timers_);
  detach_threads();
  ++members_;  // the caller
  lock.unlock();
  timers.clear();
  lock.lock();
  finish(0);
  leave(std::move(lock));
}

}  // namespace coppice::executor
