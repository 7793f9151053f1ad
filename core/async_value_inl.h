// Templates of core/async_value.h: allocation of async values, and_then, map, flat_map. Include that header
// instead.
#pragma once

#include <vector>

#include "core/async_value.h"

namespace coppice {
namespace detail {

// Returns the bytes in front of the header, so that header + kPayloadOffset is aligned for the payload.
constexpr size_t async_value_padding(size_t alignment) {
  return (alignment - AsyncValue::kPayloadOffset % alignment) % alignment;
}

template <class T>
struct HeapAsyncValue {
  static constexpr size_t kAlignment = alignof(T) < alignof(AsyncValue) ? alignof(AsyncValue) : alignof(T);
  static constexpr size_t kPadding = async_value_padding(kAlignment);
  static constexpr size_t kSize = kPadding + AsyncValue::kPayloadOffset + sizeof(T);
  static constexpr bool kIsOverAligned = kAlignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

  // `type` may be another one of the same payload and memory.
  static AsyncValue* allocate(const AsyncValueType* type = &kType) {
    void* memory;
    if constexpr (kIsOverAligned) {
      memory = ::operator new (kSize, std::align_val_t{kAlignment});
    } else {
      memory = allocate_block(kSize);
    }
    return new (static_cast<std::byte*>(memory) + kPadding) AsyncValue(type);
  }
  static void deallocate(AsyncValue* value) {
    std::destroy_at(value);
    void* memory = reinterpret_cast<std::byte*>(value) - kPadding;
    if constexpr (kIsOverAligned) {
      ::operator delete (memory, kSize, std::align_val_t{kAlignment});
    } else {
      free_block(memory, kSize);
    }
  }
  static void run_destructor(void* payload) { std::destroy_at(std::launder(static_cast<T*>(payload))); }
  static constexpr auto destroy_payload = std::is_trivially_destructible_v<T> ? nullptr : &run_destructor;

  static const AsyncValueType kType;
};
template <class T>
inline constexpr AsyncValueType HeapAsyncValue<T>::kType = {&typeid(T), destroy_payload, &deallocate,
                                                            /*is_indirect=*/false, kKeepPayloadOnError<T>};

// Allocates a header without payload: for indirect values and untyped errors.
AsyncValue* allocate_bare_async_value(const AsyncValueType* type);
void deallocate_bare_async_value(AsyncValue* value);
extern const AsyncValueType kUntypedIndirectType;
extern const AsyncValueType kUntypedErrorType;
template <class T>
inline constexpr AsyncValueType kTypedIndirectType = {&typeid(T), nullptr, &deallocate_bare_async_value,
                                                      /*is_indirect=*/true, false};

// Takes a new value's first reference, by a plain store.
inline RCReference<AsyncValue> own_new(AsyncValue* value) {
  RefAccess::count(value).start();
  return RCReference<AsyncValue>::reclaim(value);
}

template <class T, class Self>
void AsyncValueMethods<T, Self>::forward_to(AsyncValueRef<T> target) const {
  value().forward_to(std::move(target).release_rc_reference());
}

template <class T, class Self>
template <class F>
void AsyncValueMethods<T, Self>::and_then(F&& f) const {
  if constexpr (std::is_invocable_v<std::decay_t<F>&, AsyncValuePtr<T>>) {
    value().and_then([f = std::forward<F>(f)](AsyncValue* source) mutable { f(AsyncValuePtr<T>(source)); });
  } else {
    value().and_then(std::forward<F>(f));
  }
}

// Adds a reference to a value that only the caller knows of yet, by a plain store.
template <class U>
AsyncValueRef<U> copy_of_unshared(const AsyncValueRef<U>& result) {
  AsyncValue* const value = result.get_async_value();
  RefAccess::count(value).set_unique_to(2);
  return AsyncValueRef<U>(RCReference<AsyncValue>::reclaim(value));
}

// Says what f(source) becomes: each rule names the result's type, makes the result and fulfils it;
// exceptions are the caller's. kIsShared: others than the caller know of the result.
struct MapRule {
  template <class U>
  static AsyncValueRef<U> make_result() {
    static_assert(!std::is_reference_v<U> && !std::is_void_v<U>,
                  "map's function returns a value; Chain{} for none");
    return make_unconstructed_async_value<U>();
  }
  template <bool kIsShared, class U, class F, class T>
  static void fulfil(AsyncValueRef<U>& result, F& f, T& source) {
    const auto make = [&]() -> U { return f(source); };
    if constexpr (kIsShared) {
      result.emplace_with(make);
    } else {
      result.value().template emplace_unshared_with<U>(make);
    }
  }
};
struct TryMapRule {
  template <class V>
  static auto make_result() {
    static_assert(std::variant_size_v<V> == 2 && std::is_same_v<std::variant_alternative_t<1, V>, Error>,
                  "try_map's function returns a std::variant<U, Error>");
    return make_unconstructed_async_value<std::variant_alternative_t<0, V>>();
  }
  template <bool kIsShared, class U, class F, class T>
  static void fulfil(AsyncValueRef<U>& result, F& f, T& source) {
    std::variant<U, Error> outcome = f(source);
    if (outcome.index() == 1) return result.set_error(std::get<1>(std::move(outcome)));
    result.emplace(std::get<0>(std::move(outcome)));
  }
};
struct FlatMapRule {
  template <class Result>
  static Result make_result() {
    static_assert(kIsAsyncValueRef<Result>, "flat_map's function returns an AsyncValueRef");
    return make_indirect_async_value<typename Result::element_type>();
  }
  template <bool kIsShared, class U, class F, class T>
  static void fulfil(AsyncValueRef<U>& result, F& f, T& source) {
    result.forward_to(f(source));
  }
};

// `result` becomes what Rule makes of f(source), or the error of either.
template <class Rule, bool kIsShared, class U, class F, class T>
void follow(AsyncValueRef<U>& result, F& f, AsyncValuePtr<T> source) {
  if (source.is_error()) return result.set_error(source.error());
  try {
    Rule::template fulfil<kIsShared>(result, f, source.get());
  } catch (...) {
    result.set_error(current_exception_as_error());
  }
}

// An executor gets this to run. Dropped before that, it leaves an error instead of a result that never
// comes.
template <class Rule, class U, class F, class T>
struct FollowTask {
  Promise<U> result;
  F f;
  AsyncValueRef<T> source;

  void operator()() {
    AsyncValueRef<U> mine = result.release();
    follow<Rule, true>(mine, f, source.as_ptr());
  }
};

template <class T, class Self>
template <class Rule, class F>
auto AsyncValueMethods<T, Self>::chain(F&& f) const {
  auto result = Rule::template make_result<std::invoke_result_t<F&, T&>>();
  if (is_available()) {
    follow<Rule, false>(result, f, AsyncValuePtr<T>(&value()));
    return result;
  }
  and_then([result = copy_of_unshared(result), f = std::forward<F>(f)](AsyncValuePtr<T> source) mutable {
    follow<Rule, true>(result, f, source);
  });
  return result;
}
template <class T, class Self>
template <class Rule, class Executor, class F>
auto AsyncValueMethods<T, Self>::chain_on(Executor&& executor, F&& f) const {
  auto result = Rule::template make_result<std::invoke_result_t<F&, T&>>();
  using U = typename decltype(result)::element_type;
  struct Hand {
    AsyncValueRef<U> result;
    Executor executor;  // a reference when an lvalue was passed
    std::decay_t<F> f;
    void operator()(AsyncValuePtr<T> source) {
      if (source.is_error()) return result.set_error(source.error());
      executor(FollowTask<Rule, U, std::decay_t<F>, T>{Promise<U>(std::move(result)), std::move(f),
                                                       source.copy_ref()});
    }
  };
  and_then(Hand{copy_of_unshared(result), std::forward<Executor>(executor), std::forward<F>(f)});
  return result;
}

template <class T, class Self>
template <class F>
auto AsyncValueMethods<T, Self>::map(F&& f) const {
  return chain<MapRule>(std::forward<F>(f));
}
template <class T, class Self>
template <class Executor, class F>
auto AsyncValueMethods<T, Self>::map(Executor&& executor, F&& f) const {
  return chain_on<MapRule>(std::forward<Executor>(executor), std::forward<F>(f));
}
template <class T, class Self>
template <class F>
auto AsyncValueMethods<T, Self>::try_map(F&& f) const {
  return chain<TryMapRule>(std::forward<F>(f));
}
template <class T, class Self>
template <class Executor, class F>
auto AsyncValueMethods<T, Self>::try_map(Executor&& executor, F&& f) const {
  return chain_on<TryMapRule>(std::forward<Executor>(executor), std::forward<F>(f));
}
template <class T, class Self>
template <class F>
auto AsyncValueMethods<T, Self>::flat_map(F&& f) const {
  return chain<FlatMapRule>(std::forward<F>(f));
}
template <class T, class Self>
template <class Executor, class F>
auto AsyncValueMethods<T, Self>::flat_map(Executor&& executor, F&& f) const {
  return chain_on<FlatMapRule>(std::forward<Executor>(executor), std::forward<F>(f));
}

}  // namespace detail

template <class T, class... Args>
AsyncValueRef<T> make_constructed_async_value(Args&&... args) {
  auto result = make_unconstructed_async_value<T>();
  result.construct(std::forward<Args>(args)...);
  return result;
}
template <class T, class... Args>
AsyncValueRef<T> make_available_async_value(Args&&... args) {
  auto result = make_unconstructed_async_value<T>();
  result.value().template emplace_unshared_with<T>([&]() -> T { return T(std::forward<Args>(args)...); });
  return result;
}
template <class T>
AsyncValueRef<T> make_unconstructed_async_value() {
  return AsyncValueRef<T>(detail::own_new(detail::HeapAsyncValue<T>::allocate()));
}
template <class T>
AsyncValueRef<T> make_error_async_value(Error error) {
  auto result = make_unconstructed_async_value<T>();
  result.set_error(std::move(error));
  return result;
}
template <class T>
AsyncValueRef<T> make_indirect_async_value() {
  return AsyncValueRef<T>(detail::own_new(detail::allocate_bare_async_value(&detail::kTypedIndirectType<T>)));
}

template <class T>
AsyncValueRef<Chain> when_all(std::span<const AsyncValueRef<T>> values) {
  const std::vector<RCReference<AsyncValue>> untyped(values.begin(), values.end());
  return when_all(std::span<const RCReference<AsyncValue>>(untyped));
}
template <class... T>
AsyncValueRef<Chain> when_all(const AsyncValueRef<T>&... values) {
  const RCReference<AsyncValue> untyped[] = {values..., nullptr};  // at least one element, for an empty pack
  return when_all(std::span<const RCReference<AsyncValue>>(untyped, sizeof...(T)));
}

}  // namespace coppice
