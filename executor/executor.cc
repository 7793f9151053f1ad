// execute(), and the host and request behind it.
#include "executor/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "executor/frame.h"
#include "executor/nested_calls.h"
#include "executor/operation_errors.h"
#include "executor/value_list.h"

namespace coppice::executor {

IntrusivePtr<Request> Host::start_request(IntrusivePtr<Stream> stream) {
  // Relaxed: only that the numbers differ counts.
  return make_intrusive<Request>(share(this), std::move(stream),
                                 next_source_.fetch_add(1, std::memory_order_relaxed));
}

Request::Request(IntrusivePtr<Host> host, IntrusivePtr<Stream> stream, uint64_t source)
    : host_(std::move(host)), stream_(std::move(stream)), source_(source) {}
Request::~Request() = default;

bool Request::cancel_at(WorkQueue::Clock::time_point when) {
  const bool has_queue = queue() != nullptr;
  COPPICE_CHECK(has_queue, "cancel_at() needs a host with a queue");
  const WorkQueue::Timer timer = queue()->add_at(when, Task([weak = WeakIntrusivePtr<Request>(share(this))] {
                                                   if (const auto self = weak.lock()) self->cancel();
                                                 }));
  if (!timer) return false;
  WorkQueue::Timer later = timer;
  {
    const std::lock_guard lock(mutex_);
    if (!deadline_ || timer < deadline_) std::swap(later, deadline_);
  }
  if (later) queue()->remove_timer(later);
  return true;
}

// The deadline's task has a weak reference, for which the request would keep all that it has until then.
void Request::release_resources() {
  if (deadline_) queue()->remove_timer(deadline_);
  stream_.reset();
  host_.reset();
}

void Request::cancel() {
  // The flag is set before the list is read: whatever is added to the list later sees the flag.
  if ((flags_.fetch_or(kCancelled, std::memory_order_relaxed) & kCancelled) != 0 || is_parents()) return;
  std::vector<Suspended*> held;
  {
    const std::lock_guard lock(mutex_);
    for (Suspended* s = suspended_; s != nullptr; s = s->next) {
      if (s->type.hold(*s)) held.push_back(s);
    }
  }
  for (Suspended* const s : held) s->type.cancel(*s);
}

bool Request::add(Suspended& suspended) {
  const std::lock_guard lock(mutex_);
  if (is_cancelled()) return false;
  suspended.is_listed = true;
  suspended.previous = nullptr;
  suspended.next = suspended_;
  if (suspended_ != nullptr) suspended_->previous = &suspended;
  suspended_ = &suspended;
  return true;
}
bool Request::remove(Suspended& suspended) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(suspended.is_listed, false)) return false;
  (suspended.previous != nullptr ? suspended.previous->next : suspended_) = suspended.next;
  if (suspended.next != nullptr) suspended.next->previous = suspended.previous;
  return true;
}

std::string Request::describe_waiting() const {
  if (is_parents()) guard_.check("describe_waiting()");
  std::string text;
  const std::lock_guard lock(mutex_);
  flags_.fetch_or(kDescribed, std::memory_order_relaxed);
  for (const Suspended* s = suspended_; s != nullptr; s = s->next) s->type.describe(*s, text);
  // Release, paired with the acquire in Request::flags().
  flags_.fetch_and(~kDescribed, std::memory_order_release);
  return text;
}

namespace detail {
[[gnu::tls_model("initial-exec")]] constinit thread_local int nested_calls = 0;
}  // namespace detail

Error NestedCall::error(const LoadedFunction& function) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("@{}: more than {} functions call each other", function.name, kMostNestedCalls));
}

namespace {

Error wrong_argument(const LoadedFunction& function, size_t i, std::string_view found) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("argument {} of @{} must be {}, and is {}", i + 1,
                                                        function.name, function.argument_types[i], found));
}

// Returns whether the value's type is not known yet. The state is read first: a value that another thread
// forwards meanwhile has its type when it is available.
bool is_open(const AsyncValue& value) { return !value.is_available() && value.payload_type() == nullptr; }

// Returns a value that becomes what `value` becomes, or an error if that cannot be argument i of the
// function.
RCReference<AsyncValue> checked_later(const LoadedFunction& function, size_t i, AsyncValue& value) {
  RCReference<AsyncValue> checked = make_indirect_async_value();
  value.and_then([checked, &function, i, module = share(function.module)](AsyncValue* source) {
    const Registry& registry = module->registry();
    if (registry.is_type(*source, function.argument_types[i])) {
      checked->forward_to(share(source));
    } else {
      checked->set_error(wrong_argument(function, i, registry.type_name_of(*source)));
    }
  });
  return checked;
}

// The request's stream keeps its own events in order. Nobody else's says anything to it before it is there.
bool is_given_by_stream(const Request& request, const AsyncValue& event) {
  return request.stream() != nullptr && request.stream()->gave(event);
}
// Returns an indirect value in place of an event: of these only the request's own are not waited for.
RCReference<AsyncValue> as_awaited(AsyncValue& event) {
  RCReference<AsyncValue> indirect = make_indirect_async_value();
  indirect->forward_to(share(&event));
  return indirect;
}

}  // namespace

void execute(const LoadedFunction& function, std::span<AsyncValue* const> arguments,
             std::span<AsyncValue*> results, Request& request) {
  if (NestedCall::is_one_too_many()) {
    std::fill(results.begin(), results.end(), nullptr);
    return fail(results, NestedCall::error(function));
  }
  const NestedCall nested;
  const IntrusivePtr<Frame> frame = Frame::create(function, request);
  frame->start(arguments);
  frame->take_results(results);
}

CheckedArguments::CheckedArguments(const LoadedFunction& function,
                                   std::span<const RCReference<AsyncValue>> arguments,
                                   const Request& request) {
  if (arguments.size() != function.argument_types.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("@{} takes {} argument{}, not {}", function.name, function.argument_types.size(),
                            function.argument_types.size() == 1 ? "" : "s", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    AsyncValue* const value = arguments[i].get();
    if (value == nullptr) throw wrong_argument(function, i, "null");
    if (is_open(*value)) {
      made_.push_back(checked_later(function, i, *value));
      values_.push_back(made_.back().get());
    } else {
      const Registry& registry = function.module->registry();
      if (!registry.is_type(*value, function.argument_types[i]))
        throw wrong_argument(function, i, registry.type_name_of(*value));
      const bool is_awaited = function.argument_types[i] == kEventType && !value->is_available() &&
                              !value->is_indirect() && !is_given_by_stream(request, *value);
      if (is_awaited) made_.push_back(as_awaited(*value));
      values_.push_back(is_awaited ? made_.back().get() : value);
    }
  }
}

std::vector<RCReference<AsyncValue>> execute(const LoadedFunction& function,
                                             std::span<const RCReference<AsyncValue>> arguments,
                                             Request& request) {
  const CheckedArguments checked(function, arguments, request);
  std::vector<AsyncValue*> results(function.returns.size());
  execute(function, checked.values(), results, request);
  return owned(results);
}

}  // namespace coppice::executor
