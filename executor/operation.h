// The C++ function of an operation sees this: arguments, results, attributes, and the request it runs
// for.
//
//   registry.add("add.i32", [](int32_t a, int32_t b) { return a + b; });
//   registry.add("copy_to_two", [](Argument<int32_t> in, Result<int32_t> a, Result<int32_t> b) { a.set(in), b.set(in); });
//   registry.add("read", [](const std::string& path, Request& r) -> AsyncValueRef<Text> { ... returns at once ... });
//
// Parameters, in any order but in the text's order among their kind:
//   T, const T&, T&          the value of an argument, available and no error
//   Argument<T>              the same, and its async value
//   After                    a stream's event: what the operation puts on the request's stream runs after it anyway, so
//                            the operation starts without waiting for it
//   MoreEvents               however many events follow, each as of an After
//   Named<T>                 a thing that whoever loads the module gives by name (bindings.h), "$name" in the text
//   Constant<T>              an attribute: bool, int32_t, int64_t, float, double, std::string_view, LoadedFunction, or a
//                            list: std::span<const U> of int64_t, double or std::string
//   Result<T>                a result; set, emplace or allocate it before returning
//   OutBytes                 a result of type `bytes`, written in place (host_bytes.h; Registry::add_out_variant)
//   RemainingArguments, RemainingResults, RemainingAttributes      however many there are; last of their kind
//   Request&                 the request
// It returns nothing, a value, an AsyncValueRef of one, a StreamEvent, or a std::tuple of these; results that
// it returns come before Result<T> parameters. It may throw: results that are not set become that error.
//
// Ownership: arguments are +0: they live until the function returns; who needs one longer takes a
// value_ref(). Results are +1: the reference that is set or returned passes to the executor. Work that
// completes a result later holds the Promise that allocate() gives. Forgotten, or dropped by a queue that
// shuts down, it makes the result the error kCancelled.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/async_value.h"
#include "executor/host.h"
#include "executor/module.h"

namespace coppice::executor {

class LoadedFunction;

// An attribute with the function or the binding found that it names.
struct BoundAttribute {
  const Attribute* value;
  const LoadedFunction* function;  // of a FunctionRef, else null
  AsyncValue* binding = nullptr;   // of a BindingRef, available; else null
};

// An operation's values are in these registers of its function.
struct OperationRegisters {
  std::span<const uint32_t> arguments, results;
  std::span<const BoundAttribute> attributes;
  // The function, if this is a LoadedOperation of it (loader.h); else null.
  const LoadedFunction* owner = nullptr;
};

// One run of an operation.
class OperationCall {
 public:
  OperationCall(Request& request, const std::atomic<AsyncValue*>* registers,
                const OperationRegisters& operation, std::span<AsyncValue*> results)
      : request_(request), registers_(registers), operation_(operation), results_(results) {}
  // The same call with other places for its results.
  OperationCall(const OperationCall& call, std::span<AsyncValue*> results)
      : OperationCall(call.request_, call.registers_, call.operation_, results) {}

  Request& request() const { return request_; }
  size_t num_arguments() const { return operation_.arguments.size(); }
  // Relaxed: the operation runs, and what started it has ordered this already.
  AsyncValue* argument(size_t i) const {
    return registers_[operation_.arguments[i]].load(std::memory_order_relaxed);
  }
  const OperationRegisters& operation() const { return operation_; }
  const BoundAttribute& attribute(size_t i) const { return operation_.attributes[i]; }
  std::span<const BoundAttribute> attributes() const { return operation_.attributes; }
  // Null until set; each is a reference that passes to the executor.
  std::span<AsyncValue*> results() const { return results_; }

 private:
  Request& request_;
  const std::atomic<AsyncValue*>* registers_;
  const OperationRegisters& operation_;
  std::span<AsyncValue*> results_;
};

// Argument<AnyValue>: an argument of whatever type, for operations that infer types themselves.
struct AnyValue {};

template <class T>
class Argument {
 public:
  explicit Argument(AsyncValue* value) : value_(value) {}
  T& get() const { return value_->get<T>(); }
  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }
  AsyncValue* value() const { return value_; }
  // Returns a reference of one's own, for work that outlives the call.
  AsyncValueRef<T> value_ref() const { return AsyncValueRef<T>(share(value_)); }

 private:
  AsyncValue* value_;
};

template <class T>
class Result {
 public:
  explicit Result(AsyncValue** slot) : slot_(slot) {}
  // Makes a value that will come later, and the duty to complete it: work that is dropped with it leaves
  // an error.
  [[nodiscard]] Promise<T> allocate() const {
    auto value = make_unconstructed_async_value<T>();
    set(coppice::detail::copy_of_unshared(value));
    return Promise<T>(std::move(value));
  }
  template <class... Args>
  void emplace(Args&&... args) const {
    set(make_available_async_value<T>(std::forward<Args>(args)...));
  }
  void set(AsyncValueRef<T> value) const {
    COPPICE_CHECK(*slot_ == nullptr, "a result is set once");
    *slot_ = value.release_rc_reference().release();
  }
  // Makes the argument itself the result; nothing is copied.
  void set(const Argument<T>& argument) const { set(argument.value_ref()); }
  void set_error(Error error) const { set(make_error_async_value<T>(std::move(error))); }

 private:
  AsyncValue** slot_;
};

// A point in the order of the request's stream; `done` is available when the device has come there. For the
// host, too, it is an async value of type Chain; the text's type is `event`.
struct StreamEvent {
  AsyncValueRef<Chain> done;
};
class After {
 public:
  explicit After(AsyncValue* value) : value_(value) {}
  AsyncValueRef<Chain> done() const { return AsyncValueRef<Chain>(share(value_)); }

 private:
  AsyncValue* value_;
};

class MoreEvents {
 public:
  MoreEvents(const OperationCall& call, size_t first) : call_(call), first_(first) {}
  size_t size() const { return call_.num_arguments() - first_; }
  AsyncValueRef<Chain> done(size_t i) const {
    return AsyncValueRef<Chain>(share(call_.argument(first_ + i)));
  }

 private:
  const OperationCall& call_;
  size_t first_;
};

template <class T>
class Named {
 public:
  explicit Named(T& value) : value_(&value) {}
  T& get() const { return *value_; }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;  // the module has it as long as it lives
};

template <class T>
class Constant {
 public:
  explicit Constant(T value) : value_(value) {}
  operator T() const { return value_; }
  T get() const { return value_; }

 private:
  T value_;
};
template <>
class Constant<LoadedFunction> {
 public:
  explicit Constant(const LoadedFunction* function) : function_(function) {}
  const LoadedFunction& get() const { return *function_; }
  operator const LoadedFunction&() const { return *function_; }

 private:
  const LoadedFunction* function_;
};

class RemainingArguments {
 public:
  RemainingArguments(const OperationCall& call, size_t first) : call_(call), first_(first) {}
  size_t size() const { return call_.num_arguments() - first_; }
  AsyncValue* operator[](size_t i) const { return call_.argument(first_ + i); }

 private:
  const OperationCall& call_;
  size_t first_;
};
// Slots: null until set, each a reference that passes to the executor.
using RemainingResults = std::span<AsyncValue*>;
using RemainingAttributes = std::span<const BoundAttribute>;

}  // namespace coppice::executor
