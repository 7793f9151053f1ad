// A worker without threads: one thread moves its packets and runs its functions, in turns. A call that comes
// takes no other thread's waking then, which is most of what a short one takes.
//
//   auto queue = make_intrusive<DrivenQueue>(transport);
//   Worker worker(options, transport, clock, make_intrusive<Host>(queue), codecs);
//   Driver driver(worker, transport, clock, *queue);                    // instead of a ProgressThread
//   driver.wait(worker.remote<float>(1, {module, "area"}, mesh).to_here());       // instead of wait()
//   driver.run_until([&] { return is_over; });
//
// A worker answers while its thread is in wait() or run_until(), and not while it computes, in a function of
// its own or anywhere else: others take it for lost after some time (ChannelOptions).
#pragma once
#include <deque>
#include <functional>
#include <mutex>

#include "executor/remote/worker.h"

namespace coppice::executor::remote {

// Tasks for a driver's thread. Blocking tasks and deadlines are those of a queue of its own, on threads that
// are started when there are any. Any thread may add; all else as in WorkQueue, but that wait_idle() and
// shutdown() run what is queued, on the calling thread, and nothing but they and a Driver does.
class DrivenQueue final : public WorkQueue {
 public:
  // `transport` is woken for what other threads add. It outlives the queue's use.
  explicit DrivenQueue(Transport& transport);
  ~DrivenQueue() override;

  bool add(uint64_t source, uint32_t priority, Task task) override;
  bool add_blocking(Task task) override { return others_->add_blocking(std::move(task)); }
  Timer add_at(Clock::time_point when, Task task) override { return others_->add_at(when, std::move(task)); }
  bool remove_timer(const Timer& timer) override { return others_->remove_timer(timer); }
  int threads() const override { return 1; }
  bool is_short_of_work() const override { return is_empty_.load(std::memory_order_relaxed); }
  bool is_compute_thread() const override;
  void wait_idle() override;
  void shutdown(Shutdown how) override;

  // Runs all that is queued, and what that adds, on the calling thread. Returns whether there was anything.
  // One thread at a time, and not in a task (checked).
  bool run_all();

 private:
  Transport& transport_;
  const IntrusivePtr<WorkQueue> others_;  // for what blocks, and for timers
  std::mutex mutex_;
  std::deque<Task> tasks_;  // guarded by mutex_, as is the next
  bool is_closed_ = false;
  std::atomic<bool> is_empty_{true};  // a hint: written under the mutex, read without
};

// For one thread. All four outlive it.
class Driver {
 public:
  Driver(Worker& worker, Transport& transport, const Clock& clock, DrivenQueue& queue)
      : worker_(worker), transport_(transport), clock_(clock), queue_(queue) {}

  // Moves packets and runs functions until `is_over`, which is asked after each turn on this thread; whatever
  // makes it true happens there too, or wakes the transport. What has been sent by then is under way.
  template <class F>
  void run_until(F is_over) {
    while (!is_over()) turn();
    worker_.progress();
  }
  // The value is completed by this worker's own work, which waking is done for.
  template <class T>
  void wait(const AsyncValueRef<T>& value) {
    run_until([&] { return value.is_available(); });
  }

 private:
  void turn();

  Worker& worker_;
  Transport& transport_;
  const remote::Clock& clock_;
  DrivenQueue& queue_;
};

}  // namespace coppice::executor::remote
