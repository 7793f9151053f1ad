// Instances: a run from its arguments to its results, at once or with waits in between.
#include "executor/planned/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/check.h"
#include "executor/control_flow_types.h"
#include "executor/nested_calls.h"
#include "executor/operation_errors.h"
#include "executor/planned/body_runner.h"
#include "executor/value_list.h"

namespace coppice::executor {

// A run that waits for something. It has its instance to itself until it ends or is cancelled.
class SuspendedRun final : public RefCountedBase<SuspendedRun>, private Suspended {
 public:
  SuspendedRun(Instance& instance, std::span<AsyncValue* const> arguments, std::span<AsyncValue*> results,
               Request& request)
      : Suspended(kType), instance_(share(&instance)), request_(share(&request)) {
    for (AsyncValue* const argument : arguments) arguments_.push_back(share(argument));
    results_ = make_pending(results, instance.plan().function().result_types, request);
  }

  void suspend() {
    const RCReference<AsyncValue> awaited = std::move(instance_->awaited_);
    if (!request_->add(*this)) return end_cancelled();
    awaited->and_then([self = share(this)]() mutable {
      Request& request = *self->request_;
      resume(request, [self = std::move(self)] { self->go_on(); });
    });
  }

 private:
  friend class RefCountedBase<SuspendedRun>;
  friend SuspendedAccess;

  void go_on() {
    if (!request_->remove(*this)) return;  // cancelled
    if (!instance_->runner_->advance()) return suspend();
    finish();
  }
  // The instance may begin its next run as soon as the results are there. The awaited value's waiter may keep
  // this for long, so that nothing stays here.
  void finish() {
    ValueList results(results_.size());
    instance_->runner_->take_results(results.span());
    const IntrusivePtr<Instance> instance = std::move(instance_);
    instance->end();
    for (size_t i = 0; i < results_.size(); ++i)
      request_->pending_events().forward(*request_, *results_[i],
                                         RCReference<AsyncValue>::reclaim(results[i]));
    results_.clear();
    arguments_.clear();
  }
  void describe_waiting(std::string& text) const { instance_->runner_->describe_waiting(text); }
  void cancel() {
    if (!request_->remove(*this)) return;  // it goes on
    end_cancelled();
  }
  // Operations that have not run are skipped, so that none waits.
  void end_cancelled() {
    COPPICE_CHECK(instance_->runner_->advance(), "a cancelled run waits");
    finish();
  }
  static constexpr Type kType = suspended_type<SuspendedRun>();

  IntrusivePtr<Instance> instance_;
  const IntrusivePtr<Request> request_;
  std::vector<RCReference<AsyncValue>> arguments_, results_;
};

Instance::Instance(IntrusivePtr<const PlannedFunction> plan)
    : plan_(std::move(plan)),
      learned_(plan_->numbers_.count),
      runner_(std::make_unique<BodyRunner>(*plan_->plan_, *this)) {}

Instance::~Instance() = default;

namespace {

// Returns null where there is no such memory: each value then asks for its own, and where that fails, too, it
// is an error, and not the run.
IntrusivePtr<HostMemory> memory_or_null(size_t bytes, std::pmr::memory_resource& from,
                                        const std::shared_ptr<std::atomic<int64_t>>& copies) {
  if (bytes == 0) return nullptr;
  try {
    return HostMemory::create(bytes, from, copies);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

// The arena changes with the layout, and never while a run is under way.
void Instance::take_layout() {
  // Acquire: the layout of this number, or a later one, is there.
  version_ = plan_->version_.load(std::memory_order_acquire);
  layout_ = plan_->layout();
  arena_.reset();
  arena_ = memory_or_null(layout_->arena_bytes, *std::pmr::new_delete_resource(), nullptr);
  for (size_t i = 0; i < learned_.size(); ++i) learned_[i] = {layout_->places[i].room, &has_outgrown_};
  runner_->take_places();
}

void Instance::begin(Request& request) {
  // Acquire: the state that the last run left, on whatever thread that was.
  COPPICE_CHECK(!is_running_.exchange(true, std::memory_order_acquire),
                "an instance of @{} begins a run before its last one has ended", plan_->function().name);
  request_ = &request;
  // Relaxed: an older number is as good; sizes that others have learned come with the next run.
  if (version_ != plan_->version_.load(std::memory_order_relaxed)) take_layout();
  outputs_ = memory_or_null(layout_->output_bytes, request.host().memory(), plan_->copies_);
}

void Instance::end() {
  outputs_.reset();
  ++counters_.runs;
  if (has_outgrown_) [[unlikely]] {
    ++counters_.outgrown;
    has_outgrown_ = false;
    try {
      plan_->learn(learned_);
    } catch (const std::bad_alloc&) {  // it is learned by the next run that outgrows its places
    }
    runner_->leave_places();
    version_ = kNoVersion;
  }
  request_ = nullptr;
  is_running_.store(false, std::memory_order_release);
}

void Instance::run(std::span<AsyncValue* const> arguments, std::span<AsyncValue*> results, Request& request) {
  if (NestedCall::is_one_too_many()) [[unlikely]] {
    std::fill(results.begin(), results.end(), nullptr);
    return fail(results, NestedCall::error(plan_->function()));
  }
  begin(request);
  runner_->begin(arguments);
  if (!runner_->advance()) [[unlikely]]
    return make_intrusive<SuspendedRun>(*this, arguments, results, request)->suspend();
  runner_->take_results(results);
  end();
}

std::vector<RCReference<AsyncValue>> Instance::run(std::span<const RCReference<AsyncValue>> arguments,
                                                   Request& request) {
  const CheckedArguments checked(plan_->function(), arguments, request);
  std::vector<AsyncValue*> results(plan_->function().returns.size());
  run(checked.values(), results, request);
  return owned(results);
}

InstancePool::Lease InstancePool::borrow() const {
  {
    const std::lock_guard lock(state_->mutex);
    std::vector<IntrusivePtr<Instance>>& idle = state_->idle;
    for (auto at = idle.rbegin(); at != idle.rend(); ++at) {
      if ((*at)->is_running()) continue;
      std::swap(*at, idle.back());
      IntrusivePtr<Instance> instance = std::move(idle.back());
      idle.pop_back();
      return {state_, std::move(instance)};
    }
  }
  return {state_, state_->plan->instance()};
}

size_t InstancePool::num_idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle.size();
}

InstancePool::Lease::~Lease() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->idle.push_back(std::move(instance_));
}

}  // namespace coppice::executor
