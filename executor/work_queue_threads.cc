// The threads of a queue's own: for tasks that block, and for timers (see work_queue_core.h).
#include <fmt/format.h>
#include <pthread.h>

#include "core/error.h"
#include "core/log.h"
#include "executor/work_queue_core.h"

namespace coppice::executor {

bool WorkQueueCore::start_thread(std::thread& thread, void (*body)(WorkQueueCore*, int), int index) {
  try {
    thread = coppice::start_thread([this, body, index] { body(this, index); });
  } catch (const Error& error) {
    log_warning("work queue: {}", error.what());
    return false;
  }
  ++members_;
  if (is_abandoned_) thread.detach();
  return true;
}

bool WorkQueueCore::add_blocking(Task task) {
  const Lock lock(mutex_);
  if (!accepts() || !ensure_blocking_thread()) return false;
  blocking_.push_back(std::move(task));
  ++unfinished_;
  blocking_added_.notify_one();
  return true;
}

// Starts a thread unless enough are idle for one task more, or there are as many as may be. Returns false
// where there is none at all.
bool WorkQueueCore::ensure_blocking_thread() {
  const int started = static_cast<int>(blocking_threads_.size());
  if (blocking_.size() < idle_blocking_threads_ || started == most_blocking_threads_) return true;
  std::thread thread;
  if (!start_thread(
          thread, [](WorkQueueCore* core, int index) { core->work_blocking(index); }, started))
    return started > 0;
  blocking_threads_.push_back(std::move(thread));
  return true;
}

void WorkQueueCore::work_blocking(int index) {
  name_this_thread_row(fmt::format("blocking {}", index));
  pthread_setname_np(pthread_self(), "coppice.block");
  Lock lock(mutex_);
  for (;;) {
    ++idle_blocking_threads_;
    blocking_added_.wait(lock, [&] { return state_ == State::kClosed || is_ending() || !blocking_.empty(); });
    --idle_blocking_threads_;
    if (blocking_.empty()) break;
    Task task = std::move(blocking_.front());
    blocking_.pop_front();
    run(std::move(task), lock, /*may_block=*/true);
  }
  leave(std::move(lock));
}

WorkQueue::Timer WorkQueueCore::add_at(WorkQueue::Clock::time_point when, Task task) {
  const Lock lock(mutex_);
  if (state_ != State::kOpen || is_ending() || !ensure_timer_thread()) return {};
  const auto added = timers_.emplace(WorkQueue::Timer{when, ++last_timer_}, std::move(task)).first;
  if (added == timers_.begin()) timers_changed_.notify_one();
  return added->first;
}

bool WorkQueueCore::remove_timer(const WorkQueue::Timer& timer) {
  Timers::node_type removed;  // dies without the lock
  const Lock lock(mutex_);
  removed = timers_.extract(timer);
  return !removed.empty();
}

bool WorkQueueCore::ensure_timer_thread() {
  return timer_thread_.joinable() ||
         start_thread(
             timer_thread_, [](WorkQueueCore* core, int) { core->work_timers(); }, 0);
}

void WorkQueueCore::work_timers() {
  pthread_setname_np(pthread_self(), "coppice.timer");
  Lock lock(mutex_);
  while (state_ != State::kClosed && !is_ending()) {
    if (timers_.empty()) {
      timers_changed_.wait(lock);
    } else if (const auto when = timers_.begin()->first.when; when > WorkQueue::Clock::now()) {
      timers_changed_.wait_until(lock, when);
    } else {
      Timers::node_type due = timers_.extract(timers_.begin());
      ++unfinished_;
      run(std::move(due.mapped()), lock, /*may_block=*/true);
    }
  }
  leave(std::move(lock));
}

}  // namespace coppice::executor
