// The async value's state changes, and the queue that runs continuations one after another instead of nested.
#include "core/async_value.h"

#include <cctype>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/error_rep.h"
#include "core/forked_child.h"
#include "core/late_errors.h"
#include "core/process_end.h"
#include "core/work_refusal.h"
#include "core/worker_thread.h"

namespace coppice {

// Holds waiters of completed values that this thread still has to run. It lives on the stack of the
// outermost completion; completions from inside a waiter append to it and return, so that stack depth does
// not grow with a chain's length.
class CompletionQueue {
 public:
  static CompletionQueue* current() { return current_; }

  // Runs, or leaves to the completion under way, the list of waiters of `source`, latest first.
  static void run_or_enqueue(AsyncValue* source, detail::Waiter* latest) {
    // The waiters may drop every reference to the value that they are called with.
    detail::RefAccess::count(source).add_strong();
    if (current_ != nullptr) {
      current_->append(latest);
      return;
    }
    CompletionQueue queue;
    current_ = &queue;
    queue.append(latest);
    while (queue.run_one()) {
    }
    current_ = nullptr;
  }

  // Returns the error that a value with these waiters becomes where its producer gives `error`.
  static Error amended(const detail::Waiter* latest, const Error& error) {
    const detail::ErrorAmender* first = nullptr;
    for (; latest != nullptr; latest = latest->next)
      if (latest->run == &detail::run_amender) first = static_cast<const detail::ErrorAmender*>(latest);
    return first == nullptr ? error : first->amend(*first, error);
  }
  static bool push(AsyncValue& value, detail::Waiter* waiter) { return value.push(waiter); }

  bool run_one() {
    detail::Waiter* waiter = head_;
    if (waiter == nullptr) return false;
    head_ = waiter->next;
    if (head_ == nullptr) tail_ = &head_;
    // A value's waiters stand in one run, since it completes once: the last of them returns the reference
    // taken above.
    Frame frame{waiter->source, head_ == nullptr || head_->source != waiter->source, running_};
    running_ = &frame;
    waiter->run(waiter, frame.source);
    running_ = frame.outer;
    if (frame.owes_reference) settle(frame.source);
    return true;
  }

 private:
  // Describes a waiter that is running. There are several only when one blocks in wait(), which runs those
  // behind it.
  struct Frame {
    AsyncValue* source;
    bool owes_reference;
    Frame* outer;
  };

  // Returns the reference to `source`, or leaves that to an outer waiter of the same value, which still uses
  // it.
  void settle(AsyncValue* source) {
    for (Frame* frame = running_; frame != nullptr; frame = frame->outer) {
      if (frame->source == source) {
        frame->owes_reference = true;
        return;
      }
    }
    detail::RefAccess::drop_strong(source);
  }

  void append(detail::Waiter* latest) {
    detail::Waiter* first = nullptr;
    detail::Waiter* const last = latest;
    while (latest != nullptr) {  // reverse: order of registration
      detail::Waiter* const before = latest->next;
      latest->next = first;
      first = latest;
      latest = before;
    }
    // `last` was the list's front; reversed, the front is the end.
    *tail_ = first;
    tail_ = &last->next;
  }

  // This is thread-local because the user's waiter calls emplace() on some value and nothing passes
  // through it that could carry the queue. It is one pointer, constant-initialised, for host code only,
  // and null unless this thread is inside a completion.
  static constinit thread_local CompletionQueue* current_;

  detail::Waiter* head_ = nullptr;
  detail::Waiter** tail_ = &head_;
  Frame* running_ = nullptr;
};
constinit thread_local CompletionQueue* CompletionQueue::current_ = nullptr;

bool detail::run_next_continuation() {
  CompletionQueue* const queue = CompletionQueue::current();
  return queue != nullptr && queue->run_one();
}

bool detail::add_amender(AsyncValue& value, ErrorAmender* amender) {
  return CompletionQueue::push(value, amender);
}
void detail::run_amender(Waiter* self, AsyncValue*) noexcept {
  auto* const amender = static_cast<ErrorAmender*>(self);
  amender->destroy(amender);
}

namespace {
// This is a global only so that a leak test is one line; release builds never touch it.
constinit std::atomic<int64_t> live_values{0};

constexpr const char* kDropped = "an asynchronous value was dropped before it had a value";

void destroy_payload(const AsyncValueType& type, void* payload) {
  if (type.destroy_payload != nullptr) type.destroy_payload(payload);
}
}  // namespace

int64_t live_async_values() { return live_values.load(std::memory_order_relaxed); }
void detail::count_live_async_values(int delta) { live_values.fetch_add(delta, std::memory_order_relaxed); }

AsyncValue* detail::allocate_bare_async_value(const AsyncValueType* type) {
  return new_in_block<AsyncValue>(type);
}
void detail::deallocate_bare_async_value(AsyncValue* value) { delete_in_block(value); }
constinit const AsyncValueType detail::kUntypedIndirectType = {nullptr, nullptr, &deallocate_bare_async_value,
                                                               /*is_indirect=*/true, false};
constinit const AsyncValueType detail::kUntypedErrorType = {nullptr, nullptr, &deallocate_bare_async_value,
                                                            /*is_indirect=*/false, false};

RCReference<AsyncValue> make_indirect_async_value() {
  return detail::own_new(detail::allocate_bare_async_value(&detail::kUntypedIndirectType));
}
RCReference<AsyncValue> make_error_async_value(Error error) {
  auto result = detail::own_new(detail::allocate_bare_async_value(&detail::kUntypedErrorType));
  result->set_error(std::move(error));
  return result;
}

namespace {

// Returns an exception's text as an error's message, which is one line: what does not print becomes one
// space.
std::string one_line(std::string_view text) {
  std::string line;
  bool has_gap = false;
  for (const char c : text) {
    if (c == ' ' || std::iscntrl(static_cast<unsigned char>(c)) != 0) {
      has_gap = !line.empty();
      continue;
    }
    if (std::exchange(has_gap, false)) line += ' ';
    line += c;
  }
  return line.empty() ? "an exception without a text" : line;
}

}  // namespace

Error detail::current_exception_as_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, "out of memory");
  } catch (const std::exception& exception) {
    return Error(ErrorCode::kInternal, one_line(exception.what()));
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

Error detail::dropped_value_error() { return Error(ErrorCode::kCancelled, kDropped); }
bool detail::is_dropped_value_error(const Error& error) {
  return error.code() == ErrorCode::kCancelled && error.message() == kDropped;
}

bool AsyncValue::has_waiters() const {
  const uint64_t word = word_.load(std::memory_order_acquire);
  return !is_available(word) && pointer_of<detail::Waiter>(word) != nullptr;
}

bool AsyncValue::is_unique() const {
  const AsyncValue* target = resolved();
  return detail::RefAccess::count(this).is_unique() &&
         (target == this || detail::RefAccess::count(target).is_unique());
}

Error AsyncValue::error() const {
  const uint64_t word = word_.load(std::memory_order_acquire);
  COPPICE_CHECK(state_of(word) == State::kError, "error() of an async value that is not an error");
  return Error(share(pointer_of<const Error::Rep>(word)));
}

// Pushes unless available. Success releases, so that the completing thread sees the waiter; a failure that
// finds the value available acquires what the completion published.
bool AsyncValue::push(detail::Waiter* waiter) {
  uint64_t word = word_.load(std::memory_order_acquire);
  while (!is_available(word)) {
    waiter->next = pointer_of<detail::Waiter>(word);
    const uint64_t desired = reinterpret_cast<uint64_t>(waiter) | (word & ~kPointerMask);
    if (word_.compare_exchange_weak(word, desired, std::memory_order_release, std::memory_order_acquire))
      return true;
  }
  return false;
}

// One exchange takes the waiters and publishes the state: a waiter is either in the list taken here, or
// its push fails and it runs at its own thread. It releases the payload, for those who see the state, and
// acquires the waiters.
void AsyncValue::complete(uint64_t word) {
  const uint64_t old = word_.exchange(word, std::memory_order_acq_rel);
  COPPICE_CHECK(!is_available(old), "an async value is completed once");
  // Without waiters the value may be gone already: a thread that polled has used and dropped it.
  if (auto* waiters = pointer_of<detail::Waiter>(old)) CompletionQueue::run_or_enqueue(this, waiters);
}

void AsyncValue::mark_constructed() {
  // This is relaxed: the payload concerns only the producer until complete() publishes it. It keeps the
  // waiters' pointer.
  word_.fetch_or(kPayloadBit | bits_of(State::kConstructed), std::memory_order_relaxed);
}

void AsyncValue::set_concrete() {
  COPPICE_CHECK(state() == State::kConstructed, "set_concrete() is for a constructed value, once");
  complete(kPayloadBit | bits_of(State::kConcrete));
}

// Acquire: amended() reads the waiters. Release: for those who see the state. The exchange is tried again
// when a waiter has come meanwhile, since that may be an amender.
void AsyncValue::set_error(Error error) {
  uint64_t word = word_.load(std::memory_order_acquire);
  COPPICE_CHECK(!is_available(word), "an async value is completed once");
  uint64_t kept = word & kPayloadBit;
  if (kept != 0 && !type_->keep_payload_on_error) {
    destroy_payload(*type_, payload());
    kept = 0;
  }
  while (true) {
    Error given = CompletionQueue::amended(pointer_of<detail::Waiter>(word), error);
    const uint64_t desired = reinterpret_cast<uint64_t>(given.rep_.get()) | kept | bits_of(State::kError);
    if (word_.compare_exchange_weak(word, desired, std::memory_order_acq_rel, std::memory_order_acquire)) {
      (void)given.rep_.release();
      break;
    }
    COPPICE_CHECK(!is_available(word), "an async value is completed once");
  }
  if (auto* waiters = pointer_of<detail::Waiter>(word)) CompletionQueue::run_or_enqueue(this, waiters);
}

void AsyncValue::forward_to(RCReference<AsyncValue> target) {
  COPPICE_CHECK(is_indirect(), "forward_to() is for indirect values");
  COPPICE_CHECK(target != nullptr,
                "an async value is forwarded to none: an empty AsyncValueRef, which the function of a "
                "flat_map() may have returned");
  COPPICE_CHECK(target.get() != this, "an async value forwarded to itself");
  const uint64_t word = word_.load(std::memory_order_relaxed);
  COPPICE_CHECK(state_of(word) == State::kUnconstructed, "an indirect value is forwarded once");
  // kConstructed without a payload marks "forwarded, not yet resolved", so that a second forward_to is
  // caught.
  word_.fetch_or(bits_of(State::kConstructed), std::memory_order_relaxed);
  target->and_then([self = share(this)](AsyncValue* source) { self->take_over(source); });
}

void AsyncValue::take_over(AsyncValue* target) {
  if (target->is_error()) {
    set_error(target->error());
    return;
  }
  AsyncValue* end = target->resolved();
  COPPICE_CHECK(
      type_->payload == nullptr || end->type_->payload == nullptr || *type_->payload == *end->type_->payload,
      "an indirect value of type {} forwarded to one of type {}", type_->payload->name(),
      end->type_->payload->name());
  detail::RefAccess::count(end).add_strong();
  complete(reinterpret_cast<uint64_t>(end) | bits_of(State::kConcrete));
}

AsyncValue::~AsyncValue() { count_live(-1); }

void AsyncValue::destroy(AsyncValue* self) {
  // Acquire is not needed: dropping the last reference has acquired all that the others did.
  const uint64_t word = self->word_.load(std::memory_order_relaxed);
  if (word == (kPayloadBit | bits_of(State::kConcrete)))
      [[likely]] {  // a value of its own, nothing behind it
    destroy_payload(*self->type_, self->payload());
    self->type_->deallocate(self);
    return;
  }
  if (!is_available(word) && pointer_of<detail::Waiter>(word) != nullptr) {
    self->revive();
    self->set_error(detail::dropped_value_error());
    detail::RefAccess::drop_strong(self);  // comes back here, with nothing waiting
    return;
  }
  if ((word & kPayloadBit) != 0) destroy_payload(*self->type_, self->payload());
  if (state_of(word) == State::kError)
    IntrusivePtr<const Error::Rep>::reclaim(pointer_of<const Error::Rep>(word)).reset();
  AsyncValue* target = state_of(word) == State::kConcrete ? pointer_of<AsyncValue>(word) : nullptr;
  self->type_->deallocate(self);
  if (target != nullptr) detail::RefAccess::drop_strong(target);
}

void wait(AsyncValue& value) {
  // This is checked even for a value that is available: whether one is depends on timing, and the mistake
  // does not.
  check_may_wait("wait()");
  WorkRefusal::check("wait()");
  if (value.is_available()) return;
  const RCReference<AsyncValue> keep = share(&value);
  if (auto* queue = CompletionQueue::current()) {
    while (!value.is_available() && queue->run_one()) {
    }
  }
  if (value.is_available()) return;
  // A thread of its own may have completed the value and ended meanwhile.
  if (is_alone_in_forked_child() && !value.is_available())
    throw Error(ErrorCode::kUnavailable,
                "wait(): the value was to come from a thread of the process that this one was forked from, "
                "and no thread is here but this one");

  std::mutex mutex;
  std::condition_variable arrived;
  bool is_here = false;
  value.and_then([&] {
    // It is notified under the lock: once that is released these three may be gone.
    const std::lock_guard lock(mutex);
    is_here = true;
    arrived.notify_one();
  });
  std::unique_lock lock(mutex);
  arrived.wait(lock, [&] { return is_here; });
}

}  // namespace coppice
