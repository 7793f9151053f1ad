// Instances of planned functions: one run's state, used again by the next.
//
//   auto instance = planned->instance();
//   instance->run({x}, *request);
//
//   InstancePool pool(planned);              // for as many threads as there are
//   pool.borrow()->run({x}, *request);
//
// A run at a time, on whatever thread: a second one that begins before the first has ended is a failed
// check. A run that waits for something keeps its instance, which may be dropped meanwhile.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/planned/planned_function.h"

namespace coppice::executor {

class BodyRunner;

// Counts what the runs of an instance have done so far.
struct InstanceCounters {
  int64_t runs = 0;
  int64_t outgrown = 0;  // runs in which a value had no place that was large enough, the first among them
};

class Instance final : public RefCounted {
 public:
  // For PlannedFunction::instance() only.
  explicit Instance(IntrusivePtr<const PlannedFunction> plan);
  ~Instance() override;

  // Arguments are +0, results +1; the same values and errors as execute()'s (executor.h). Errors: as there.
  std::vector<RCReference<AsyncValue>> run(std::span<const RCReference<AsyncValue>> arguments,
                                           Request& request);
  std::vector<RCReference<AsyncValue>> run(std::initializer_list<RCReference<AsyncValue>> arguments,
                                           Request& request) {
    return run(std::span(arguments.begin(), arguments.size()), request);
  }
  // The same without checks; the caller owns the results.
  void run(std::span<AsyncValue* const> arguments, std::span<AsyncValue*> results, Request& request);
  // Another instance of the same plan: with what this one has learned, and nothing of its run.
  IntrusivePtr<Instance> clone() const { return plan_->instance(); }
  const PlannedFunction& plan() const { return *plan_; }
  InstanceCounters counters() const { return counters_; }
  // Acquire: whoever sees that a run has ended may begin the next.
  bool is_running() const { return is_running_.load(std::memory_order_acquire); }

 private:
  friend class BodyRunner;
  friend class SuspendedRun;

  void begin(Request& request);
  void end();
  void take_layout();

  const IntrusivePtr<const PlannedFunction> plan_;
  std::atomic<bool> is_running_{false};
  Request* request_ = nullptr;  // of the run
  std::shared_ptr<const Layout> layout_;
  static constexpr uint64_t kNoVersion = ~uint64_t{0};
  uint64_t version_ = kNoVersion;  // of layout_
  IntrusivePtr<HostMemory> arena_, outputs_;
  std::vector<LearnedSize> learned_;
  bool has_outgrown_ = false;
  InstanceCounters counters_;
  RCReference<AsyncValue> awaited_;  // what the run waits for
  std::unique_ptr<BodyRunner> runner_;
};

// Instances that come back when they are not used any more. One whose run still waits for something then is
// left alone until it has ended. Copies share them. Thread-safe.
class InstancePool {
 private:
  struct State {
    explicit State(IntrusivePtr<const PlannedFunction> p) : plan(std::move(p)) {}
    const IntrusivePtr<const PlannedFunction> plan;
    std::mutex mutex;
    std::vector<IntrusivePtr<Instance>> idle;
  };

 public:
  explicit InstancePool(IntrusivePtr<const PlannedFunction> plan)
      : state_(std::make_shared<State>(std::move(plan))) {}

  // An instance of the caller's own: it goes back when this dies.
  class Lease {
   public:
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    Instance& operator*() const { return *instance_; }
    Instance* operator->() const { return instance_.get(); }

   private:
    friend class InstancePool;
    Lease(std::shared_ptr<State> state, IntrusivePtr<Instance> instance)
        : state_(std::move(state)), instance_(std::move(instance)) {}
    std::shared_ptr<State> state_;
    IntrusivePtr<Instance> instance_;
  };
  Lease borrow() const;
  size_t num_idle() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace coppice::executor
