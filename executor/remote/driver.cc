// Driver and its queue.
#include "executor/remote/driver.h"

#include <algorithm>

#include "core/worker_thread.h"

namespace coppice::executor::remote {

DrivenQueue::DrivenQueue(Transport& transport)
    : transport_(transport), others_(WorkQueue::create({.threads = 1})) {}

DrivenQueue::~DrivenQueue() {
  // As WorkQueue's own: what is queued runs, unless it was shut down.
  const bool is_closed = [&] {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }();
  if (!is_closed && !WorkQueue::is_worker_thread()) run_all();
}

bool DrivenQueue::is_compute_thread() const { return WorkerThreadScope::current_owner() == this; }

bool DrivenQueue::add(uint64_t, uint32_t, Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return false;
    tasks_.push_back(std::move(task));
    is_empty_.store(false, std::memory_order_relaxed);
  }
  // The thread that runs tasks sees what they add.
  if (!is_compute_thread()) transport_.wake();
  return true;
}

bool DrivenQueue::run_all() {
  COPPICE_CHECK(!WorkQueue::is_worker_thread(), "a driven queue's tasks are run by a task");
  bool has_run = false;
  while (!is_short_of_work()) {
    std::deque<Task> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
      is_empty_.store(true, std::memory_order_relaxed);
    }
    const WorkerThreadScope scope(this);
    for (Task& task : tasks) task();
    has_run = true;
  }
  return has_run;
}

void DrivenQueue::wait_idle() {
  do {
    others_->wait_idle();
  } while (run_all());
}

void DrivenQueue::shutdown(Shutdown how) {
  if (how == Shutdown::kDrain) wait_idle();
  std::deque<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    COPPICE_CHECK(!is_closed_, "a work queue is shut down once");
    is_closed_ = true;
    dropped.swap(tasks_);
  }
  others_->shutdown(how);
}

void Driver::turn() {
  const Time next = worker_.progress();
  if (queue_.run_all()) return;
  transport_.wait(next == kNever ? kNever : std::max(Time(0), next - clock_.now()));
}

}  // namespace coppice::executor::remote
