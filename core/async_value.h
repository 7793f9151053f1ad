// Typed async values: AsyncValueRef<T> owns, AsyncValuePtr<T> does not count; and how to make, chain and
// await them.
//
//   AsyncValueRef<int> answer = make_unconstructed_async_value<int>();
//   AsyncValueRef<float> half = answer.map([](int& x) { return x / 2.f; });
//   answer.emplace(42);                              // runs the continuation
//   wait(half);                                      // host only, never inside a continuation of a graph
//   if (half.is_error()) throw half.error();
//   use(half.get());
//
// Code that puts work off holds a Promise<T> instead: it completes its value once, and cannot forget to.
//
// The function of a map(), try_map() or flat_map() may throw: the result is then that error (anything but
// coppice::Error becomes kInternal). It is skipped when its source is an error; the result is the same error.
//
// Each of the three takes an executor too: anything callable with a move-only function object of no
// arguments, which it runs once, when and where it likes. An executor passed as an lvalue must live until the
// source is available. It must not throw. When it drops its task, the result is an error kCancelled.
//
// Order of continuations, threads and ownership: core/async_value_base.h.
#pragma once

#include <concepts>
#include <span>
#include <variant>

#include "core/async_value_base.h"

namespace coppice {

// This is the value of work that yields nothing but "done".
struct Chain {};

template <class T>
class AsyncValueRef;
template <class T>
class AsyncValuePtr;

template <class T, class... Args>
AsyncValueRef<T> make_available_async_value(Args&&... args);
template <class T, class... Args>
AsyncValueRef<T> make_constructed_async_value(Args&&... args);
template <class T>
AsyncValueRef<T> make_unconstructed_async_value();
template <class T>
AsyncValueRef<T> make_error_async_value(Error error);
// Makes an error that a consumer of any type accepts.
RCReference<AsyncValue> make_error_async_value(Error error);
// Makes a value of any type, or of type T only, that will be forwarded to another.
RCReference<AsyncValue> make_indirect_async_value();
template <class T>
AsyncValueRef<T> make_indirect_async_value();

namespace detail {

// Returns the error that a continuation's exception becomes. Call it inside a catch block.
Error current_exception_as_error();
// Returns the error of a value that nobody will complete any more.
Error dropped_value_error();
bool is_dropped_value_error(const Error& error);

template <class>
inline constexpr bool kIsAsyncValueRef = false;
template <class T>
inline constexpr bool kIsAsyncValueRef<AsyncValueRef<T>> = true;

// Provides what both typed pointers can do; Self has value().
template <class T, class Self>
class AsyncValueMethods {
 public:
  bool is_available() const { return value().is_available(); }
  bool is_concrete() const { return value().is_concrete(); }
  bool is_error() const { return value().is_error(); }
  bool is_unique() const { return value().is_unique(); }
  T& get() const { return value().template get<T>(); }
  T* operator->() const { return &get(); }
  T& operator*() const { return get(); }
  Error error() const { return value().error(); }

  template <class... Args>
  void emplace(Args&&... args) const {
    value().template emplace<T>(std::forward<Args>(args)...);
  }
  template <class F>
  void emplace_with(F&& f) const {
    value().template emplace_with<T>(std::forward<F>(f));
  }
  template <class... Args>
  void construct(Args&&... args) const {
    value().template construct<T>(std::forward<Args>(args)...);
  }
  void set_concrete() const { value().set_concrete(); }
  void set_error(Error error) const { value().set_error(std::move(error)); }
  void forward_to(AsyncValueRef<T> target) const;

  // Calls f() or f(AsyncValuePtr<T>), which may turn out to be an error.
  template <class F>
  void and_then(F&& f) const;
  // Returns the async value of f(T&); f returns what is put in place, movable or not.
  template <class F>
  auto map(F&& f) const;
  template <class Executor, class F>
  auto map(Executor&& executor, F&& f) const;
  // Does the same for an f(T&) that tells of errors without throwing: it returns a std::variant<U, Error>.
  template <class F>
  auto try_map(F&& f) const;
  template <class Executor, class F>
  auto try_map(Executor&& executor, F&& f) const;
  // f(T&) returns an AsyncValueRef<U>; so does this, without the nesting.
  template <class F>
  auto flat_map(F&& f) const;
  template <class Executor, class F>
  auto flat_map(Executor&& executor, F&& f) const;

 private:
  template <class Rule, class F>
  auto chain(F&& f) const;
  template <class Rule, class Executor, class F>
  auto chain_on(Executor&& executor, F&& f) const;
  AsyncValue& value() const { return static_cast<const Self*>(this)->value(); }
};

}  // namespace detail

template <class T>
class AsyncValuePtr : public detail::AsyncValueMethods<T, AsyncValuePtr<T>> {
 public:
  AsyncValuePtr() = default;
  explicit AsyncValuePtr(AsyncValue* value) : value_(value) {}
  AsyncValuePtr(const AsyncValueRef<T>& ref) : value_(ref.get_async_value()) {}

  AsyncValue& value() const { return *value_; }
  AsyncValue* get_async_value() const { return value_; }
  AsyncValueRef<T> copy_ref() const { return AsyncValueRef<T>(share(value_)); }
  explicit operator bool() const { return value_ != nullptr; }
  friend bool operator==(const AsyncValuePtr& a, const AsyncValuePtr& b) { return a.value_ == b.value_; }

 private:
  AsyncValue* value_ = nullptr;
};

template <class T>
class AsyncValueRef : public detail::AsyncValueMethods<T, AsyncValueRef<T>> {
 public:
  using element_type = T;

  AsyncValueRef() = default;
  AsyncValueRef(std::nullptr_t) {}
  explicit AsyncValueRef(RCReference<AsyncValue> value) : value_(std::move(value)) {}
  // A template looks at T only where it is given an error: T may hold an AsyncValueRef<T> itself.
  template <std::same_as<Error> E>
  AsyncValueRef(E error) requires(!std::constructible_from<T, E>)
      : AsyncValueRef(make_error_async_value<T>(std::move(error))) {}
  operator RCReference<AsyncValue>() const& { return value_; }
  operator RCReference<AsyncValue>() && { return std::move(value_); }

  AsyncValue& value() const { return *value_; }
  AsyncValue* get_async_value() const { return value_.get(); }
  AsyncValuePtr<T> as_ptr() const { return *this; }
  RCReference<AsyncValue> release_rc_reference() { return std::move(value_); }
  void reset() { value_.reset(); }
  explicit operator bool() const { return static_cast<bool>(value_); }
  friend bool operator==(const AsyncValueRef& a, const AsyncValueRef& b) { return a.value_ == b.value_; }

 private:
  RCReference<AsyncValue> value_;
};
static_assert(sizeof(AsyncValueRef<int>) == sizeof(void*) && sizeof(AsyncValuePtr<int>) == sizeof(void*));

// Holds the duty to complete a value, once, by a value or an error. Dropped before that it leaves the
// error kCancelled, so that nobody waits for ever; completing with an empty promise, or twice, is a failed
// check. It is for one thread at a time.
template <class T>
class [[nodiscard]] Promise {
 public:
  Promise() = default;  // empty
  explicit Promise(AsyncValueRef<T> value) : value_(std::move(value)) {}
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    Promise taken(std::move(other));
    std::swap(value_, taken.value_);
    return *this;
  }
  ~Promise() {
    if (value_) value_.set_error(detail::dropped_value_error());
  }

  // Returns what is promised.
  AsyncValueRef<T> value() const { return value_; }
  explicit operator bool() const { return static_cast<bool>(value_); }

  // When T's constructor throws, the promise is still to be kept.
  template <class... Args>
  void emplace(Args&&... args) {
    AsyncValueRef<T> value = release();
    try {
      value.emplace(std::forward<Args>(args)...);
    } catch (...) {
      value_ = std::move(value);
      throw;
    }
  }
  void set_error(Error error) { release().set_error(std::move(error)); }
  // Passes the duty on to the caller; the promise is empty.
  [[nodiscard]] AsyncValueRef<T> release() {
    COPPICE_CHECK(value_, "a promise is kept once");
    return std::move(value_);
  }

 private:
  AsyncValueRef<T> value_;
};
template <class T>
Promise<T> make_promise() {
  return Promise<T>(make_unconstructed_async_value<T>());
}

// Returns an untyped reference as a typed one: null, or (cast) a failed check, unless
// AsyncValue::is_type<T>().
template <class T>
AsyncValueRef<T> dyn_cast(RCReference<AsyncValue> value) {
  return value && value->is_type<T>() ? AsyncValueRef<T>(std::move(value)) : AsyncValueRef<T>();
}
template <class T>
AsyncValueRef<T> cast(RCReference<AsyncValue> value) {
  COPPICE_CHECK(value && value->is_type<T>(), "an async value of another type");
  return AsyncValueRef<T>(std::move(value));
}

template <class T>
void wait(const AsyncValueRef<T>& ref) {
  wait(ref.value());
}
template <class T>
void wait(AsyncValuePtr<T> ptr) {
  wait(ptr.value());
}

// Returns a value that is available when all are; an error when any is: that of the first one in the span,
// whichever finished first.
AsyncValueRef<Chain> when_all(std::span<const RCReference<AsyncValue>> values);
template <class T>
AsyncValueRef<Chain> when_all(std::span<const AsyncValueRef<T>> values);
// Does the same for values of different types.
template <class... T>
AsyncValueRef<Chain> when_all(const AsyncValueRef<T>&... values);

// Calls f(), once, when all are available, values or errors: at once, or on the thread that completes the
// last.
template <class F>
void run_when_ready(std::span<const RCReference<AsyncValue>> values, F&& f) {
  when_all(values).and_then(std::forward<F>(f));
}

}  // namespace coppice

#include "core/async_value_inl.h"
