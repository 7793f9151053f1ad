// AsyncValue: the type-erased, reference-counted place of a value that may come later. Layout and state
// machine.
//
// Users want the typed pointers of core/async_value.h; this is what they, and the executor, stand on.
//
//   offset  0   reference count (core/ref_counted.h)                    8 bytes
//           8   word: pointer | payload-alive bit | state               8 bytes
//          16   const AsyncValueType*                                   8 bytes
//          24   payload, for every type: an over-aligned payload moves the header up in its allocation, not
//          itself
//
// The word's pointer is, while unavailable: the list of waiters, latest first; when kConcrete: the value that
// an indirect value was forwarded to, null for a value with its own payload; when kError: the error.
//
// Ownership: whoever will complete a value holds a reference to it until emplace, set_error, ... has
// returned. A value whose last reference goes before it is available, while something waits for it, becomes
// an error kCancelled: consumers hear of it instead of hanging. Continuations do not keep the value that they
// wait for alive. Threads: everything but the payload may be used from any thread. One producer completes a
// value, once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include "core/block_pool.h"
#include "core/error.h"
#include "core/intrusive_ptr.h"

namespace coppice {

class AsyncValue;

// Specialise to true for a type whose constructed payload shall outlive set_error(), until the value itself
// dies.
template <class T>
inline constexpr bool kKeepPayloadOnError = false;

// Tells the type-erased code what it must know of a payload and its allocation; one constant table per
// type and allocation.
struct AsyncValueType {
  const std::type_info*
      payload;  // null: untyped (an error or an indirect value that may turn out to be anything)
  void (*destroy_payload)(void* payload);  // null: nothing to do
  void (*deallocate)(AsyncValue*);         // runs the header's destructor and frees the memory
  bool is_indirect;
  bool keep_payload_on_error;
};

namespace detail {

// This is a continuation in a value's list. `run` calls it and deletes it.
struct Waiter {
  Waiter* next;
  AsyncValue* source;
  void (*run)(Waiter* self, AsyncValue* source) noexcept;
};

void count_live_async_values(int delta);

}  // namespace detail

// Returns how many async values exist now; always 0 unless COPPICE_DEBUG is defined.
int64_t live_async_values();

class AsyncValue final : public RefCountedBase<AsyncValue> {
 public:
  // kUnconstructed --emplace------------------> kConcrete        (available: final)
  //       |  |  |--- forward_to, target ready -> kConcrete or kError
  //       |  |------ set_error ----------------> kError           (available: final)
  //   construct                                     ^
  //       v                                         |
  // kConstructed --set_error (payload destroyed) ---'
  //       '--------- set_concrete -------------> kConcrete
  enum class State : uint8_t { kUnconstructed = 0, kConstructed = 1, kConcrete = 2, kError = 3 };

  static constexpr size_t kPayloadOffset = 24;
  static constexpr bool kAllowsWeakReferences = false;  // a dying value is lent to its waiters once more
  static constexpr bool kIsMostlyUnique = true;

  // `type` outlives the value. This is for allocators: make_* of core/async_value.h is what others call.
  explicit AsyncValue(const AsyncValueType* type) : type_(type) { count_live(1); }
  ~AsyncValue();
  AsyncValue(const AsyncValue&) = delete;
  AsyncValue& operator=(const AsyncValue&) = delete;

  // This acquires, as those below do: a thread that sees the state sees the payload or error that was
  // written before it.
  State state() const { return state_of(word_.load(std::memory_order_acquire)); }
  bool is_available() const { return is_available(word_.load(std::memory_order_acquire)); }
  bool is_concrete() const { return state() == State::kConcrete; }
  bool is_error() const { return state() == State::kError; }
  bool is_indirect() const { return type_->is_indirect; }
  // Returns the table that it was made with.
  const AsyncValueType* type() const { return type_; }
  // Returns whether this is known to hold, now or later, a T. An untyped error counts as every type, an
  // untyped indirect value that has not been forwarded as none.
  template <class T>
  bool is_type() const {
    return is_payload(typeid(T));
  }
  bool is_payload(const std::type_index& payload) const {
    const std::type_info* const type = payload_type();
    return type != nullptr ? payload == *type : is_error();
  }
  // Returns the type of the payload that this holds, now or later; null while it may be anything, and for
  // untyped errors.
  const std::type_info* payload_type() const { return resolved()->type_->payload; }
  // Returns whether the caller's reference is the only one, to this value and to all that it was forwarded
  // to.
  bool is_unique() const;
  bool has_waiters() const;

  // Returns the payload of a concrete (or, for its producer, constructed) value; the target's when
  // forwarded.
  template <class T>
  T& get() {
    AsyncValue* value = resolved();
    COPPICE_DCHECK(value->has_payload(), "get() of an async value that holds no value (yet)");
    COPPICE_DCHECK(value->type_->payload != nullptr && *value->type_->payload == typeid(T),
                   "get() with another type: {}", value->type_->payload->name());
    return *std::launder(static_cast<T*>(value->payload()));
  }
  template <class T>
  const T& get() const {
    return const_cast<AsyncValue*>(this)->get<T>();
  }
  // Returns the error of an error value.
  Error error() const;

  // These complete a value. Each runs the waiters before it returns, or, when called from inside a waiter,
  // has them run on this thread as soon as that waiter returns: completion never recurses, however long a
  // chain of continuations is.
  template <class T, class... Args>
  void emplace(Args&&... args) {
    expect_incomplete<T>(State::kUnconstructed);
    new (payload()) T(std::forward<Args>(args)...);
    complete(kPayloadBit | bits_of(State::kConcrete));
  }
  // Emplaces what f() returns, in place: T need not be movable.
  template <class T, class F>
  void emplace_with(F&& f) {
    expect_incomplete<T>(State::kUnconstructed);
    new (payload()) T(std::forward<F>(f)());
    complete(kPayloadBit | bits_of(State::kConcrete));
  }
  // Does the same for a new value that only the caller knows of: whoever hands it out publishes the
  // payload too, so a plain store completes it.
  template <class T, class F>
  void emplace_unshared_with(F&& f) {
    COPPICE_DCHECK(word_.load(std::memory_order_relaxed) == 0, "emplace_unshared_with() is for new values");
    new (payload()) T(std::forward<F>(f)());
    word_.store(kPayloadBit | bits_of(State::kConcrete), std::memory_order_relaxed);
  }
  // kUnconstructed -> kConstructed: the producer may fill the payload in, others still wait.
  template <class T, class... Args>
  void construct(Args&&... args) {
    expect_incomplete<T>(State::kUnconstructed);
    new (payload()) T(std::forward<Args>(args)...);
    mark_constructed();
  }
  template <class T, class F>
  void construct_with(F&& f) {
    expect_incomplete<T>(State::kUnconstructed);
    new (payload()) T(std::forward<F>(f)());
    mark_constructed();
  }
  void set_concrete();  // kConstructed -> kConcrete
  void set_error(Error error);
  // Is called once, on an indirect value: takes over the target's value or error, now or when it has one.
  // Chains collapse: the value at the end is kept. Until then the target is not kept alive (see
  // Ownership).
  void forward_to(RCReference<AsyncValue> target);

  // Calls waiter(AsyncValue*), or waiter(), exactly once: at once when available, else when that comes about,
  // on the thread that completes. Waiters of one value run in the order of their registration (on one thread;
  // concurrent registrations: in the order in which they took effect); waiters of values completed meanwhile
  // run after all those that wait in line already. A waiter must not throw, and must not block except by
  // wait(). The value lives at least as long as the call. Lock-free.
  template <class F>
  void and_then(F&& waiter);

 private:
  friend class RefCountedBase<AsyncValue>;
  friend struct detail::RefAccess;
  friend class CompletionQueue;

  static constexpr uint64_t kStateMask = 3;
  static constexpr uint64_t kPayloadBit = 4;
  static constexpr uint64_t kPointerMask = ~uint64_t{7};

  static uint64_t bits_of(State state) { return static_cast<uint64_t>(state); }
  static State state_of(uint64_t word) { return static_cast<State>(word & kStateMask); }
  static bool is_available(uint64_t word) { return (word & 2) != 0; }
  template <class T>
  static T* pointer_of(uint64_t word) {
    return reinterpret_cast<T*>(word & kPointerMask);
  }
  void* payload() { return reinterpret_cast<std::byte*>(this) + kPayloadOffset; }
  bool has_payload() const { return (word_.load(std::memory_order_acquire) & kPayloadBit) != 0; }
  AsyncValue* resolved() const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    if (state_of(word) == State::kConcrete && pointer_of<AsyncValue>(word) != nullptr)
      return pointer_of<AsyncValue>(word);
    return const_cast<AsyncValue*>(this);
  }
  static void call(auto& waiter, AsyncValue* source) {
    if constexpr (std::is_invocable_v<decltype(waiter), AsyncValue*>) {
      waiter(source);
    } else {
      waiter();
    }
  }
  template <class T>
  void expect_incomplete(State expected) const {
    // Relaxed: only the one producer moves the state, and that is the caller.
    const State now = state_of(word_.load(std::memory_order_relaxed));
    COPPICE_CHECK(now == expected, "an async value is completed once");
    COPPICE_DCHECK(!is_indirect() && type_->payload != nullptr && *type_->payload == typeid(T),
                   "completed with a value of another type");
  }
  void mark_constructed();
  void complete(uint64_t word);
  bool push(detail::Waiter* waiter);
  void take_over(AsyncValue* target);
  static void destroy(AsyncValue* self);
  static void count_live([[maybe_unused]] int delta) {
    if constexpr (kCountsLiveObjects) detail::count_live_async_values(delta);
  }

  std::atomic<uint64_t> word_{0};
  const AsyncValueType* type_;
};
static_assert(sizeof(AsyncValue) == AsyncValue::kPayloadOffset);
static_assert(alignof(detail::Waiter) >= 8 && alignof(AsyncValue) >= 8,
              "the word's low three bits are not address");

template <class F>
void AsyncValue::and_then(F&& waiter) {
  using Function = std::decay_t<F>;
  if (is_available()) {
    call(waiter, this);
    return;
  }
  struct Node : detail::Waiter {
    Node(AsyncValue* source, F&& f) : Waiter{nullptr, source, &run_node}, function(std::forward<F>(f)) {}
    static void run_node(detail::Waiter* self, AsyncValue* source) noexcept {
      auto* const node = static_cast<Node*>(self);
      call(node->function, source);
      delete_in_block(node);  // after the call: noexcept, so there is no other way out
    }
    Function function;
  };
  auto* node = new_in_block<Node>(this, std::forward<F>(waiter));
  if (!push(node)) node->run(node, this);  // became available meanwhile
}

// Blocks the calling host thread until the value is available; the only function here that blocks. Called
// from inside a waiter it first runs what is waiting in line on this thread. On a worker thread of a work
// queue (core/worker_thread.h) it is a failed check, whether or not the value is available. Errors:
// kUnavailable in a forked child without a second thread, where the value would never come.
void wait(AsyncValue& value);

}  // namespace coppice
