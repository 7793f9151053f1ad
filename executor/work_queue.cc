// The queue as its users hold it: a reference to a core that may outlive it for a
// while (see work_queue_core.h).
#include "executor/work_queue.h"

#include "core/check.h"
#include "core/forked_child.h"
#include "core/worker_thread.h"
#include "executor/work_queue_core.h"

namespace coppice::executor {
namespace {

class ConcurrentWorkQueue final : public WorkQueue {
 public:
  explicit ConcurrentWorkQueue(const Options& options) : core_(std::make_unique<WorkQueueCore>(options)) {}
  ~ConcurrentWorkQueue() override {
    if (core_->is_in_child() || core_->is_left_behind()) {
      core_.release();  // in a child, whoever holds its mutex is the parent's
    } else if (!core_->is_open()) {
      return;
    } else if (coppice::is_worker_thread() || core_->is_ending()) {
      core_.release()->abandon();
    } else {
      core_->shutdown(Shutdown::kDrain);
    }
  }

  bool add(uint64_t source, uint32_t priority, Task task) override {
    check_process("add()");
    COPPICE_CHECK(
        !is_forked_child(),
        "add() of a work queue that was made in a forked child: oneTBB, which runs compute tasks, has "
        "left its threads in the process that this one was forked from, which had a queue or a "
        "device; fork before the first one is made");
    return core_->add(source, priority, std::move(task));
  }
  bool add_blocking(Task task) override {
    check_process("add_blocking()");
    return core_->add_blocking(std::move(task));
  }
  Timer add_at(Clock::time_point when, Task task) override {
    check_process("add_at()");
    return core_->add_at(when, std::move(task));
  }
  bool remove_timer(const Timer& timer) override {
    return !core_->is_in_child() && core_->remove_timer(timer);
  }
  int threads() const override { return core_->threads(); }
  bool is_short_of_work() const override { return core_->is_short_of_work(); }
  bool is_compute_thread() const override { return core_->is_compute_thread(); }
  void wait_idle() override {
    check_may_wait("wait_idle()");
    check_process("wait_idle()");
    core_->wait_idle();
  }
  void shutdown(Shutdown how) override {
    check_may_wait("shutdown()");
    check_process("shutdown()");
    core_->shutdown(how);
  }

 private:
  void check_process(const char* call) const {
    COPPICE_CHECK(
        !core_->is_in_child(),
        "{} of a work queue of the process that this one was forked from, whose threads are not here; "
        "fork before it is made",
        call);
  }

  std::unique_ptr<WorkQueueCore> core_;
};

}  // namespace

IntrusivePtr<WorkQueue> WorkQueue::create(const Options& options) {
  return make_intrusive<ConcurrentWorkQueue>(options);
}
bool WorkQueue::is_worker_thread() { return coppice::is_worker_thread(); }

}  // namespace coppice::executor
