// RemoteRef<T>: a reference to an object of some worker, counted. Copies on one worker share one count; as an
// argument or in a result of a remote call it becomes a reference of the worker that gets it.
#pragma once
#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "executor/remote/worker_core.h"

namespace coppice::executor::remote {
namespace detail {

// Is what an argument is sent as: texts are strings.
template <class T>
using Sent = std::conditional_t<std::is_convertible_v<const T&, std::string_view> && !std::is_class_v<T>,
                                std::string, T>;

template <class T>
class TypedReceiver final : public Receiver {
 public:
  explicit TypedReceiver(Codecs codecs) : codecs_(std::move(codecs)) {}
  AsyncValueRef<T> value() const { return promise_.value(); }
  void set(RCReference<AsyncValue> value) override {
    if (!value->is_type<T>()) return set_error(wrong_type(codecs_, *value, typeid(T)));
    promise_.emplace(value->get<T>());
  }
  void set_error(Error error) override { promise_.set_error(std::move(error)); }

 private:
  const Codecs codecs_;
  Promise<T> promise_ = make_promise<T>();
};

}  // namespace detail

template <class T>
class RemoteRef {
 public:
  using element_type = T;

  RemoteRef() = default;  // refers to nothing
  explicit RemoteRef(IntrusivePtr<Lease> lease) : lease_(std::move(lease)) {}

  explicit operator bool() const { return static_cast<bool>(lease_); }
  WorkerId owner() const { return lease().rref().owner; }
  bool is_owner() const { return lease().value() != nullptr; }
  const RRefId& id() const { return lease().rref(); }
  const IntrusivePtr<Lease>& get_lease() const { return lease_; }

  // Brings the object's value: a copy of it, or at its owner the value itself. It is the error that the
  // object is, or what has happened on the way, or kUnavailable after `timeout` (kNever: that of the
  // worker's options).
  AsyncValueRef<T> to_here(Time timeout = kNever) const {
    if (is_owner()) return local_value();
    WorkerCore& core = lease().core();
    auto receiver = std::make_unique<detail::TypedReceiver<T>>(core.codecs());
    AsyncValueRef<T> result = receiver->value();
    core.fetch(lease(), core.deadline(timeout), std::move(receiver));
    return result;
  }
  // Returns the value at its owner, without a copy. Anywhere else it is an error kInvalidArgument.
  AsyncValueRef<T> local_value() const {
    if (!is_owner())
      return make_error_async_value<T>(
          Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is on worker {}, and this is worker {}: to_here() brings its value",
                            describe(id()), owner(), lease().core().self())));
    AsyncValue* const value = lease().value();
    if (value->is_available()) return typed(share(value), lease().core().codecs());
    auto result = make_indirect_async_value<T>();
    value->and_then([result, value = share(value), codecs = lease().core().codecs()]() mutable {
      AsyncValueRef<T> there = typed(std::move(value), codecs);
      if (there.is_error()) return result.set_error(there.error());
      result.forward_to(std::move(there));
    });
    return result;
  }

  // References to one object, of whatever forks.
  friend bool operator==(const RemoteRef& a, const RemoteRef& b) {
    return a.lease_ && b.lease_ ? a.id() == b.id() : !a.lease_ && !b.lease_;
  }

 private:
  static AsyncValueRef<T> typed(RCReference<AsyncValue> value, const Codecs& codecs) {
    if (value->is_type<T>()) return AsyncValueRef<T>(std::move(value));
    return make_error_async_value<T>(wrong_type(codecs, *value, typeid(T)));
  }
  Lease& lease() const {
    COPPICE_CHECK(lease_, "a remote reference that refers to nothing");
    return *lease_;
  }
  IntrusivePtr<Lease> lease_;
};

template <class T>
void Codecs::add_remote() {
  const std::string name = "remote." + of(typeid(T)).name;
  add(typeid(RemoteRef<T>), {name,
                             [](const AsyncValue& value, Encoder& e) {
                               const IntrusivePtr<Lease>& lease = value.get<RemoteRef<T>>().get_lease();
                               if (!lease)
                                 throw Error(ErrorCode::kInvalidArgument,
                                             "a remote reference to nothing is not sent");
                               e.out.number(e.references.size());
                               e.references.push_back(lease);
                             },
                             [](Decoder& d) -> RCReference<AsyncValue> {
                               const uint64_t i = d.in.number();
                               if (i >= d.references.size()) d.in.fail("a reference that did not come along");
                               return make_available_async_value<RemoteRef<T>>(d.references[i]);
                             }});
}

}  // namespace coppice::executor::remote
