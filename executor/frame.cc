// This runs frames: operations that are ready, values that become so, and the hand-over to other threads.
#include "executor/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/block_pool.h"
#include "core/error.h"
#include "core/trace.h"
#include "executor/operation_errors.h"
#include "executor/value_list.h"

namespace coppice::executor {

using coppice::detail::RefAccess;

namespace {

void drop(AsyncValue* value, uint32_t n = 1) { RefAccess::drop_strong(value, n); }

// Turns the caller's one reference into n.
void hold(AsyncValue* value, uint32_t n) {
  coppice::detail::RefCount& count = RefAccess::count(value);
  if (n == 0) {
    drop(value);
  } else if (count.is_unique()) {
    count.set_unique_to(n);  // nobody else knows the value: a store
  } else if (n > 1) {
    count.add_strong(n - 1);
  }
}

}  // namespace

size_t Frame::bytes(const LoadedFunction& f) {
  static_assert(sizeof(Frame) % alignof(std::atomic<AsyncValue*>) == 0);
  return sizeof(Frame) + f.registers.size() * sizeof(std::atomic<AsyncValue*>) +
         f.operations.size() * (sizeof(std::atomic<uint32_t>) + sizeof(uint32_t));
}

IntrusivePtr<Frame> Frame::create(const LoadedFunction& f, Request& request) {
  auto* memory = static_cast<std::byte*>(allocate_block(bytes(f)));
  auto* frame = new (memory) Frame(f, request);
  RefAccess::count(frame).start();
  memory += sizeof(Frame);
  frame->registers_ = reinterpret_cast<std::atomic<AsyncValue*>*>(memory);
  memory += f.registers.size() * sizeof(std::atomic<AsyncValue*>);
  frame->waits_ = reinterpret_cast<std::atomic<uint32_t>*>(memory);
  frame->next_ = reinterpret_cast<uint32_t*>(memory + f.operations.size() * sizeof(std::atomic<uint32_t>));
  for (size_t r = 0; r < f.registers.size(); ++r)
    new (&frame->registers_[r]) std::atomic<AsyncValue*>(nullptr);
  for (size_t op = 0; op < f.operations.size(); ++op)
    new (&frame->waits_[op]) std::atomic<uint32_t>(f.operations[op].waits);
  return IntrusivePtr<Frame>::reclaim(frame);
}

void Frame::destroy(Frame* frame) {
  const LoadedFunction& function = frame->function_;
  const size_t size = bytes(function);
  const bool shared = frame->shared_;
  Request& request = frame->request_;
  std::destroy_at(frame);
  free_block(frame, size);
  if (!shared) return;
  RefAccess::drop_strong(function.module);
  RefAccess::drop_strong(&request);
}

// The last strong reference has gone; only the list's weak one is left.
void Frame::release_resources() {
  request_.remove(*this);
  RefAccess::drop_weak(this);
}

void Frame::share() {
  if (shared_) return;
  shared_ = true;
  RefAccess::count(&request_).add_strong();
  RefAccess::count(function_.module).add_strong();
  RefAccess::count(this).add_weak();
  if (!request_.add(*this)) RefAccess::drop_weak(this);  // start() cancels what waits
}

void Frame::start(std::span<AsyncValue* const> arguments) {
  ReadyOperations ready;
  // From the first missing argument on, all are set before any is published: then others may know the
  // frame.
  const auto n = static_cast<uint32_t>(arguments.size());
  uint32_t first_missing = 0;
  for (; first_missing < n && arguments[first_missing]->is_available(); ++first_missing) {
    set_argument(first_missing, arguments[first_missing]);
    for (const RegisterUser& user : function_.registers[first_missing].users) arrive(ready, user.operation);
  }
  for (uint32_t i = first_missing; i < n; ++i) set_argument(i, arguments[i]);
  for (uint32_t i = first_missing; i < n; ++i) {
    if (!function_.registers[i].users.empty()) publish(ready, i, arguments[i]);
  }
  for (const uint32_t op : function_.without_waits) push(ready, op);
  drain(ready);
  if (!function_.non_strict.empty()) start_non_strict();
  if (shared_ && request_.is_cancelled()) cancel_waiting();
}

// Makes an operation that waits ready; it gets indirect values for missing arguments. False: it has begun
// already.
bool Frame::begin_waiting(ReadyOperations& ready, uint32_t op) {
  if (!claim(op)) return false;
  for (const uint32_t r : function_.operations[op].arguments) materialize(r);
  push(ready, op);
  return true;
}

// Starts the non-strict operations that still wait, since they need nothing. The cheap ones run before
// the next one begins, which then misses fewer arguments.
void Frame::start_non_strict() {
  ReadyOperations expensive;
  for (const uint32_t op : function_.non_strict) {
    const bool is_handed_over =
        function_.operations[op].where == Run::kCompute && request_.queue() != nullptr;
    ReadyOperations ready;
    if (begin_waiting(is_handed_over ? expensive : ready, op) && !is_handed_over) drain(ready);
  }
  if (expensive.compute != kNoOperation) drain(expensive);
}

// Starts all that waits, of a request that is cancelled: an operation that begins now is skipped.
void Frame::cancel_waiting() {
  for (uint32_t op = 0; op < function_.operations.size(); ++op) {
    if (!claim(op)) continue;
    for (const uint32_t r : function_.operations[op].arguments) materialize(r);
    ReadyOperations ready;
    run(ready, op);
    drain(ready);
  }
}

void Frame::take_results(std::span<AsyncValue*> results) {
  for (size_t i = 0; i < results.size(); ++i) results[i] = materialize(function_.returns[i]);
}

// Returns a register's value, an indirect one if there is none yet.
AsyncValue* Frame::materialize(uint32_t r) {
  // Acquire: another thread may have made the value.
  AsyncValue* value = registers_[r].load(std::memory_order_acquire);
  if (value != nullptr) return value;
  AsyncValue* indirect = make_indirect_async_value().release();
  if (function_.register_types[r] == kEventType) request_.pending_events().add(request_, *indirect);
  const uint32_t uses = function_.registers[r].use_count;
  RefAccess::count(indirect).set_unique_to(uses);
  share();  // its producer has not run yet, so it runs later
  // Release: the producer that finds it here sees its counts.
  if (registers_[r].compare_exchange_strong(value, indirect, std::memory_order_acq_rel)) return indirect;
  drop(indirect, uses);
  return value;
}

inline void Frame::push(ReadyOperations& ready, uint32_t op) {
  uint32_t& top = function_.operations[op].where == Run::kCompute ? ready.compute : ready.here;
  next_[op] = top;
  top = op;
}

inline void Frame::arrive(ReadyOperations& ready, uint32_t op) {
  std::atomic<uint32_t>& waits = waits_[op];
  if (!shared_) [[likely]] {
    const uint32_t left = waits.load(std::memory_order_relaxed);
    if (left == 0) return;  // a non-strict one, which has started without this register
    waits.store(left - 1, std::memory_order_relaxed);
    if (left == 1) push(ready, op);
    return;
  }
  // Acquire and release: whoever starts the operation sees all registers that others have set.
  uint32_t left = waits.load(std::memory_order_acquire);
  while (left != 0) {
    if (!waits.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    if (left == 1) push(ready, op);
    return;
  }
}

// Tells the users of a register that it is set, and arranges for them to be told when it is available. After
// the call to and_then() the value may be gone.
inline void Frame::publish(ReadyOperations& ready, uint32_t r, AsyncValue* value) {
  if (!value->is_available()) return publish_pending(ready, r, value);
  for (const RegisterUser& user : function_.registers[r].users) arrive(ready, user.operation);
}

void Frame::publish_pending(ReadyOperations& ready, uint32_t r, AsyncValue* value) {
  const std::span<const RegisterUser> users = function_.registers[r].users;
  // An indirect value itself says nothing about the stream: its producer may not even have run.
  const AsyncValueRef<Chain> enqueued =
      value->is_indirect() ? request_.pending_events().enqueued(*value) : AsyncValueRef<Chain>();
  const bool is_enqueued = !value->is_indirect() || (enqueued && enqueued.is_available());
  bool wait_for_value = false, wait_for_event = false;
  for (const RegisterUser& user : users) {
    if (user.needs == Needs::kNothing || (user.needs == Needs::kEnqueued && is_enqueued)) {
      arrive(ready, user.operation);
    } else {
      (user.needs == Needs::kEnqueued ? wait_for_event : wait_for_value) = true;
    }
  }
  const bool is_event_apart = wait_for_event && enqueued;
  if (is_event_apart) continue_when(enqueued.value(), r, {.of_value = false, .of_event = true});
  if (wait_for_value || (wait_for_event && !is_event_apart))
    continue_when(*value, r, {.of_value = true, .of_event = !is_enqueued && !is_event_apart});
}

// On a compute thread of the queue, cheap operations go on at once.
void Frame::continue_when(AsyncValue& value, uint32_t r, Users users) {
  share();
  value.and_then([frame = coppice::share(this), r, users]() mutable {
    Request& request = frame->request_;
    const WorkQueue* const queue = request.queue();
    if (queue != nullptr && queue->is_compute_thread()) {
      frame->continue_with(r, users, Context::kContinuation);
    } else {
      resume(request,
             [frame = std::move(frame), r, users] { frame->continue_with(r, users, Context::kOwn); });
    }
  });
}

// Stores a result. The reference for storing goes back in the same store of the count when no other thread
// can see the register before we are done with the value.
inline void Frame::set(ReadyOperations& ready, uint32_t r, AsyncValue* value) {
  const uint32_t uses = function_.registers[r].use_count;
  if (!shared_) [[likely]] {
    if (AsyncValue* indirect = registers_[r].load(std::memory_order_relaxed))
      return forward(ready, r, indirect, value);
    hold(value, uses - 1);
    if (uses == 1) return;
    registers_[r].store(value, std::memory_order_relaxed);
    publish(ready, r, value);
    return;
  }
  set_shared(ready, r, value, uses);
}

void Frame::set_shared(ReadyOperations& ready, uint32_t r, AsyncValue* value, uint32_t uses) {
  AsyncValue* indirect = registers_[r].load(std::memory_order_acquire);
  if (indirect == nullptr) {
    hold(value, uses);
    // Release: counts and contents, for whoever takes the register's value to a caller or to an operation.
    if (registers_[r].compare_exchange_strong(indirect, value, std::memory_order_acq_rel)) {
      publish(ready, r, value);
      drop(value);
      return;
    }
    if (uses > 1) drop(value, uses - 1);
  }
  forward(ready, r, indirect, value);
}

// The argument is +0: the caller keeps it alive while we start, and the function's own uses keep it alive
// later.
inline void Frame::set_argument(uint32_t r, AsyncValue* value) {
  const uint32_t uses = function_.registers[r].use_count - 1;
  if (uses == 0) return;
  RefAccess::count(value).add_strong(uses);
  registers_[r].store(value, std::memory_order_relaxed);
}

void Frame::forward(ReadyOperations& ready, uint32_t r, AsyncValue* indirect, AsyncValue* value) {
  request_.pending_events().forward(request_, *indirect, RCReference<AsyncValue>::reclaim(value));
  publish(ready, r, indirect);
  drop(indirect);
}

void Frame::continue_with(uint32_t r, Users users, Context context) {
  ReadyOperations ready;
  for (const RegisterUser& user : function_.registers[r].users) {
    if ((user.needs == Needs::kAvailable && users.of_value) ||
        (user.needs == Needs::kEnqueued && users.of_event))
      arrive(ready, user.operation);
  }
  drain(ready, context);
}

// Takes the right to start a non-strict operation, whatever it waits for.
bool Frame::claim(uint32_t op) {
  if (!shared_) {
    if (waits_[op].load(std::memory_order_relaxed) == 0) return false;
    waits_[op].store(0, std::memory_order_relaxed);
    return true;
  }
  return waits_[op].exchange(0, std::memory_order_acq_rel) != 0;
}

// Runs cheap operations at once, since they may set others free. Then it runs one of the expensive ones
// here, and gives other threads as many of the rest as the queue is short of. It gives them all away when
// this is no compute thread of the queue, or has more to do.
void Frame::drain(ReadyOperations& ready, Context context) {
  WorkQueue* const queue = request_.queue();
  while (true) {
    while (ready.here != kNoOperation) {
      const uint32_t op = ready.here;
      ready.here = next_[op];
      if (function_.operations[op].where == Run::kBlocking && queue != nullptr) {
        dispatch(op, Run::kBlocking);
      } else {
        run(ready, op);
      }
    }
    if (ready.compute == kNoOperation) return;
    const uint32_t op = ready.compute;
    ready.compute = next_[op];
    const bool runs_here = queue == nullptr || (context == Context::kOwn && queue->is_compute_thread());
    while (ready.compute != kNoOperation && queue != nullptr && (!runs_here || queue->is_short_of_work())) {
      const uint32_t other = ready.compute;
      ready.compute = next_[other];
      dispatch(other, Run::kCompute);
    }
    if (runs_here) {
      run(ready, op);
    } else {
      dispatch(op, Run::kCompute);
    }
  }
}

void Frame::dispatch(uint32_t op, Run where) {
  share();
  WorkQueue& queue = *request_.queue();
  Task task(MustRun(request_, [frame = coppice::share(this), op] {
    ReadyOperations ready;
    frame->run(ready, op);
    frame->drain(ready);
  }));
  if (where == Run::kBlocking) {
    queue.add_blocking(std::move(task));
  } else {
    queue.add(request_.source(), function_.operations[op].priority, std::move(task));
  }
}

inline AsyncValue* Frame::first_error(const LoadedOperation& op) const {
  for (const uint32_t r : op.arguments) {
    AsyncValue* value = registers_[r].load(std::memory_order_relaxed);
    if (value->is_error()) return value;
  }
  return nullptr;
}

inline bool Frame::has_all_arguments(const LoadedOperation& op) const {
  return std::all_of(op.arguments.begin(), op.arguments.end(), [&](uint32_t r) {
    return registers_[r].load(std::memory_order_relaxed)->is_available();
  });
}

inline void Frame::run_function(const LoadedOperation& op, std::span<AsyncValue*> results) {
  OperationCall call(request_, registers_, op, results);
  const TraceScope trace(op.info->name);  // of what the operation does here, not of what it sets off
  try {
    op.run(op.function, call);
  } catch (...) {
    fail_with_exception({function_, op, registers_}, results);
    return;
  }
  for (const AsyncValue* const result : results) {
    if (result == nullptr || !result->is_concrete())
      return check_results({function_, op, registers_}, results);
  }
}

template <bool kHasFlags>
[[gnu::always_inline]] inline void Frame::run(ReadyOperations& ready, uint32_t index, uint32_t flags) {
  const LoadedOperation& op = function_.operations[index];
  ValueList slots(op.results.size());
  const std::span<AsyncValue*> results = slots.span();
  const bool is_cancelled = kHasFlags && (flags & Request::kCancelled) != 0;
  // The first error is known where all arguments are there.
  const bool takes_errors = !op.non_strict && (!is_cancelled || has_all_arguments(op));
  AsyncValue* const failed = takes_errors ? first_error(op) : nullptr;
  if (failed == nullptr && !is_cancelled) [[likely]] {
    run_function(op, results);
  } else {
    fail(results, failed == nullptr ? Error(ErrorCode::kCancelled, "cancelled")
                                    : skipped({function_, op, registers_}, *failed));
  }
  const std::span<const uint32_t> registers = op.results;
  for (size_t i = 0; i < results.size(); ++i) set(ready, registers[i], results[i]);
  if (kHasFlags && (flags & Request::kDescribed) != 0) request_.wait_described();
  // Relaxed: nothing has changed these registers since the operation became ready.
  for (const uint32_t r : op.arguments) drop(registers_[r].load(std::memory_order_relaxed));
}

void Frame::run(ReadyOperations& ready, uint32_t index) {
  const uint32_t flags = request_.flags();
  if (flags != 0) [[unlikely]]
    return run_flagged(ready, index, flags);
  run<false>(ready, index, 0);
}

void Frame::run_flagged(ReadyOperations& ready, uint32_t index, uint32_t flags) {
  run<true>(ready, index, flags);
}

}  // namespace coppice::executor
