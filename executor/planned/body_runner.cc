// The loop over a planned function's operations, and what happens where values are errors or not there yet.
#include "executor/planned/body_runner.h"

#include <algorithm>
#include <utility>

#include "core/trace.h"
#include "executor/control_flow_types.h"
#include "executor/must_run.h"
#include "executor/nested_calls.h"
#include "executor/operation_errors.h"
#include "executor/waiting_texts.h"

namespace coppice::executor {

using coppice::detail::RefAccess;

namespace {

using Body = PlannedOperation::Body;

void drop(AsyncValue* value) { RefAccess::drop_strong(value); }

AsyncValue* reference_to(AsyncValue* value) { return share(value).release(); }

// Runs an operation as the executor does. What it throws, and values of other types than it has, are errors.
void run_checked(const RunningOperation& running, OperationCall& call, std::span<AsyncValue*> results) {
  const TraceScope trace(running.operation.info->name);
  try {
    running.operation.run(running.operation.function, call);
    check_results(running, results);
  } catch (...) {
    fail_with_exception(running, results);
  }
}

// An operation that may block, on a thread that may: its results are indirect values until it has run.
struct BlockingCall {
  const LoadedFunction* function;
  const LoadedOperation* operation;
  IntrusivePtr<const LoadedModule> module;
  IntrusivePtr<Request> request;
  std::vector<RCReference<AsyncValue>> arguments, results;

  void operator()() const {
    std::vector<uint32_t> numbers(arguments.size());
    std::vector<std::atomic<AsyncValue*>> registers(arguments.size());
    for (uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i, registers[i] = arguments[i].get();
    const OperationRegisters at{numbers, {}, operation->attributes};
    ValueList made(results.size());
    // Errors name arguments by the function's own registers, of which there are none here.
    const RunningOperation running{*function, *operation, registers.data()};
    if (request->is_cancelled()) {
      executor::fail(made.span(), Error(ErrorCode::kCancelled, "cancelled"));
    } else {
      OperationCall call(*request, registers.data(), at, made.span());
      run_checked(running, call, made.span());
    }
    for (size_t i = 0; i < results.size(); ++i)
      request->pending_events().forward(*request, *results[i], RCReference<AsyncValue>::reclaim(made[i]));
  }
};

}  // namespace

BodyRunner::BodyRunner(const FunctionPlan& plan, Instance& instance)
    : plan_(plan),
      instance_(instance),
      registers_(new std::atomic<AsyncValue*>[plan.registers.size()]),
      slots_(plan.registers.size()),
      bodies_(plan.operations.size()) {
  for (uint32_t r = 0; r < plan.registers.size(); ++r) {
    const PlannedRegister& to = plan.registers[r];
    if (to.home == Home::kArena && to.is_out) {
      slots_[r] = make_available_async_value<HostBytes>().release_rc_reference().release();
    }
    set(r, slots_[r]);
  }
  for (size_t i = 0; i < plan.operations.size(); ++i) {
    if (plan.operations[i].mode != Mode::kBody) continue;
    bodies_[i] = std::make_unique<Bodies>();
    for (const auto& body : plan.operations[i].bodies)
      bodies_[i]->runners.push_back(std::make_unique<BodyRunner>(*body, instance));
  }
}

BodyRunner::~BodyRunner() {
  abandon();
  for (AsyncValue* const slot : slots_)
    if (slot != nullptr) drop(slot);
}

void BodyRunner::take_places() {
  for (uint32_t r = 0; r < plan_.registers.size(); ++r) {
    const PlannedRegister& to = plan_.registers[r];
    if (to.home == Home::kArena && to.is_out)
      PlannedBytes::put(slots_[r]->get<HostBytes>(), place_in(instance_.arena_, to.size));
  }
  for (const auto& bodies : bodies_) {
    if (!bodies) continue;
    for (const auto& runner : bodies->runners) runner->take_places();
  }
}

void BodyRunner::leave_places() {
  for (uint32_t r = 0; r < plan_.registers.size(); ++r) {
    const PlannedRegister& to = plan_.registers[r];
    if (to.home == Home::kArena && to.is_out) PlannedBytes::put(slots_[r]->get<HostBytes>(), {});
  }
  for (const auto& bodies : bodies_) {
    if (!bodies) continue;
    for (const auto& runner : bodies->runners) runner->leave_places();
  }
}

PlannedBytes::Place BodyRunner::place_in(const IntrusivePtr<HostMemory>& memory, uint32_t size) const {
  const Layout::Place& place = instance_.layout_->places[size];
  LearnedSize* const learned = &instance_.learned_[size];
  if (place.room == 0 || !memory) return {nullptr, 0, learned};
  return {memory->data() + place.offset, place.room, learned};
}

void BodyRunner::begin(std::span<AsyncValue* const> arguments, std::span<const CallerPlace> places) {
  is_plain_ = !Trace::is_on();
  for (uint32_t r = 0; r < arguments.size(); ++r) {
    set(r, arguments[r]);
    is_plain_ &= arguments[r]->is_concrete();
  }
  places_.assign(places.begin(), places.end());
  next_ = 0;
}

bool BodyRunner::advance() {
  const NestedCall nested;
  for (; next_ < plan_.operations.size(); ++next_) {
    const PlannedOperation& op = plan_.operations[next_];
    if (is_plain_ && op.mode <= Mode::kNative && !instance_.request_->is_cancelled()) [[likely]] {
      call(op);
    } else if (!run_with_care(op)) {
      return false;
    }
    for (const uint32_t r : op.dies) let_go(r);
  }
  return true;
}

void BodyRunner::let_go(uint32_t r) {
  if (AsyncValue* const value = registers_[r].exchange(nullptr, std::memory_order_relaxed)) drop(value);
}

// The results' places are in slots_: those that stay are there already, and new ones pass to the registers.
inline void BodyRunner::call(const PlannedOperation& op) {
  if (op.makes_values) make_results(op);
  const std::span<AsyncValue*> results(slots_.data() + op.first_result, op.num_results);
  OperationCall call(*instance_.request_, registers_.get(), loaded(op), results);
  try {
    op.run(op.function, call);
  } catch (...) {
    return fail_by_exception(op);
  }
  for (uint32_t r = op.first_result; r < op.first_result + op.num_results; ++r) {
    set(r, slots_[r]);
    if (!op.makes_values || !is_counted(r)) continue;
    if (op.mode == Mode::kOutVariant) PlannedBytes::forget_learned(slots_[r]->get<HostBytes>());
    slots_[r] = nullptr;
  }
}

// Out variants write into values that are there.
void BodyRunner::make_results(const PlannedOperation& op) {
  if (op.mode != Mode::kOutVariant) return;
  for (uint32_t r = op.first_result; r < op.first_result + op.num_results; ++r) {
    if (!is_counted(r)) continue;
    slots_[r] = make_available_async_value<HostBytes>().release_rc_reference().release();
    CallerPlace at = place_of(r, false);
    PlannedBytes::put(slots_[r]->get<HostBytes>(), at.place, std::move(at.memory));
  }
}

CallerPlace BodyRunner::place_of(uint32_t r, bool second) const {
  const PlannedRegister& to = plan_.registers[r];
  if (to.home == Home::kCaller)
    return to.last_return < places_.size() ? places_[to.last_return] : CallerPlace{};
  if (to.home != Home::kArena && to.home != Home::kOutput) return {};
  const uint32_t size = second && to.second != kNoSize ? to.second : to.size;
  if (to.home == Home::kArena) return {place_in(instance_.arena_, size), nullptr};
  return {place_in(instance_.outputs_, size), instance_.outputs_};
}

void BodyRunner::fail_by_exception(const PlannedOperation& op) {
  for (uint32_t r = op.first_result; r < op.first_result + op.num_results; ++r) {
    if (is_counted(r) && slots_[r] != nullptr) drop(std::exchange(slots_[r], nullptr));
  }
  ValueList results(op.num_results);
  fail_with_exception({*plan_.function, loaded(op), registers_.get()}, results.span());
  set_results(op, results.span());
}

void BodyRunner::fail(const PlannedOperation& op, Error error) {
  ValueList results(op.num_results);
  executor::fail(results.span(), std::move(error));
  set_results(op, results.span());
}

// Takes the references over.
void BodyRunner::set_results(const PlannedOperation& op, std::span<AsyncValue*> results) {
  for (uint32_t i = 0; i < op.num_results; ++i) {
    const uint32_t r = op.first_result + i;
    set(r, results[i]);
    is_plain_ &= results[i]->is_concrete();
    if (!is_counted(r)) errors_.push_back(r);
  }
}

bool BodyRunner::wait_for(AsyncValue& value) {
  instance_.awaited_ = share(&value);
  return false;
}

// False: it has to wait for one of them.
bool BodyRunner::wait_for_arguments(const LoadedOperation& op) {
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    AsyncValue& argument = *value(op.arguments[i]);
    if (argument.is_available()) continue;
    const Needs needs = needs_of(op, i);
    if (needs == Needs::kAvailable) return wait_for(argument);
    if (needs == Needs::kNothing || !argument.is_indirect()) continue;
    const AsyncValueRef<Chain> enqueued = instance_.request_->pending_events().enqueued(argument);
    if (!enqueued) return wait_for(argument);
    if (!enqueued.is_available()) return wait_for(enqueued.value());
  }
  return true;
}

// False: it waits.
bool BodyRunner::run_with_care(const PlannedOperation& planned) {
  const LoadedOperation& op = loaded(planned);
  if (planned.mode == Mode::kBody) return run_bodies(planned);
  const bool is_cancelled = instance_.request_->is_cancelled();
  // An operation that waits in a cancelled request is skipped; errors that are there already are given.
  if (!is_cancelled && !wait_for_arguments(op)) return false;
  const bool waits = is_cancelled && std::any_of(op.arguments.begin(), op.arguments.end(),
                                                 [&](uint32_t r) { return !value(r)->is_available(); });
  if (!op.non_strict && !waits) {
    for (const uint32_t r : op.arguments) {
      if (!value(r)->is_error()) continue;
      fail(planned, skipped({*plan_.function, op, registers_.get()}, *value(r)));
      return true;
    }
  }
  if (is_cancelled) {
    fail(planned, Error(ErrorCode::kCancelled, "cancelled"));
  } else if (planned.mode == Mode::kFallback) {
    run_fallback(planned);
  } else {
    const TraceScope trace(op.info->name);
    call(planned);
  }
  return true;
}

void BodyRunner::run_fallback(const PlannedOperation& planned) {
  const LoadedOperation& op = loaded(planned);
  Request& request = *instance_.request_;
  ValueList results(planned.num_results);
  if (op.where == Run::kBlocking && request.queue() != nullptr) {
    BlockingCall call{plan_.function, &op, share(plan_.function->module), share(&request), {}, {}};
    for (const uint32_t r : op.arguments) call.arguments.push_back(share(value(r)));
    for (uint32_t i = 0; i < planned.num_results; ++i) {
      call.results.push_back(make_indirect_async_value());
      if (plan_.function->register_types[planned.first_result + i] == kEventType)
        request.pending_events().add(request, *call.results.back());
      results[i] = reference_to(call.results.back().get());
    }
    request.queue()->add_blocking(Task(MustRun(request, std::move(call))));
  } else {
    OperationCall call(request, registers_.get(), op, results.span());
    run_checked({*plan_.function, op, registers_.get()}, call, results.span());
  }
  set_results(planned, results.span());
}

void BodyRunner::take_results(std::span<AsyncValue*> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    const uint32_t r = plan_.function->returns[i];
    if (plan_.registers[r].last_return == i && is_counted(r)) {
      results[i] = registers_[r].exchange(nullptr, std::memory_order_relaxed);
    } else {
      results[i] = reference_to(value(r));
    }
  }
  // All else that is counted has gone with its last use.
  drop_errors();
  places_.clear();
}

void BodyRunner::drop_errors() {
  for (const uint32_t r : errors_) {
    let_go(r);
    set(r, slots_[r]);
  }
  errors_.clear();
}

void BodyRunner::abandon() {
  for (uint32_t r = static_cast<uint32_t>(plan_.function->argument_types.size()); r < plan_.registers.size();
       ++r) {
    if (is_counted(r)) let_go(r);
  }
  drop_errors();
  for (const auto& bodies : bodies_) {
    if (!bodies || bodies->round < 0) continue;
    if (bodies->active != nullptr) bodies->active->abandon();
    bodies->leave();
  }
  places_.clear();
}

void BodyRunner::describe_waiting(std::string& text) const {
  if (next_ >= plan_.operations.size()) return;
  const PlannedOperation& op = plan_.operations[next_];
  if (op.mode == Mode::kBody) return describe_bodies(op, text);
  // Operations run one after the other, so that those before this one have started.
  describe_operation(text, *plan_.function, loaded(op), registers_.get(), true);
}

// The run of an operation with bodies waits in one of them, or between them.
void BodyRunner::describe_bodies(const PlannedOperation& op, std::string& text) const {
  const Bodies& bodies = *bodies_[next_];
  const LoadedFunction& first = *op.bodies[0]->function;
  if (bodies.active != nullptr) {
    bodies.active->describe_waiting(text);
  } else if (op.body == Body::kRepeat || op.body == Body::kWhile) {
    describe_loop(text, op.body == Body::kWhile, first, bodies.decider->is_available(), bodies.round);
  } else {
    describe_choice(text, first, op.bodies.size());
  }
}

}  // namespace coppice::executor
