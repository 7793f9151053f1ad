// Templates of core/async_value.h: allocation of async values, and_then, map, flat_map. Include that header
// instead.
#pragma once

#include <vector>

#include "core/async_value.h"

namespace coppice {
namespace detail {

// Bytes in front of the header, so that header + kPayloadOffset is aligned for the payload.
constexpr size_t async_value_padding(size_t alignment) {
  return (alignment - AsyncValue::kPayloadOffset % alignment) % alignment;
}

template <class T>
struct HeapAsyncValue {
  static constexpr size_t kAlignment = alignof(T) < alignof(AsyncValue) ? alignof(AsyncValue) : alignof(T);
  static constexpr size_t kPadding = async_value_padding(kAlignment);
  static constexpr size_t kSize = kPadding + AsyncValue::kPayloadOffset + sizeof(T);
  static constexpr bool kIsOverAligned = kAlignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

  static AsyncValue* allocate() {
    void* memory;
    if constexpr (kIsOverAligned) {
      memory = ::operator new (kSize, std::align_val_t{kAlignment});
    } else {
      memory = allocate_block(kSize);
    }
    return new (static_cast<std::byte*>(memory) + kPadding) AsyncValue(&kType);
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
  static void destroy_payload(void* payload) { std::destroy_at(std::launder(static_cast<T*>(payload))); }

  static const AsyncValueType kType;
};
template <class T>
inline constexpr AsyncValueType HeapAsyncValue<T>::kType = {&typeid(T), &destroy_payload, &deallocate,
                                                            /*is_indirect=*/false, kKeepPayloadOnError<T>};

// A header without payload: indirect values and untyped errors.
AsyncValue* allocate_bare_async_value(const AsyncValueType* type);
void deallocate_bare_async_value(AsyncValue* value);
extern const AsyncValueType kUntypedIndirectType;
extern const AsyncValueType kUntypedErrorType;
template <class T>
inline constexpr AsyncValueType kTypedIndirectType = {&typeid(T), nullptr, &deallocate_bare_async_value,
                                                      /*is_indirect=*/true, false};

// A new value's first reference, by a plain store.
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

template <class T, class Self>
template <class F>
auto AsyncValueMethods<T, Self>::map(F&& f) const {
  using U = std::invoke_result_t<F&, T&>;
  static_assert(!std::is_reference_v<U> && !std::is_void_v<U>,
                "map's function returns a value; Chain{} for none");
  auto result = make_unconstructed_async_value<U>();
  and_then([result, f = std::forward<F>(f)](AsyncValuePtr<T> source) mutable {
    if (source.is_error()) return result.set_error(source.error());
    try {
      result.value().template construct_with<U>([&]() -> U { return f(source.get()); });
    } catch (...) {
      return result.set_error(current_exception_as_error());
    }
    result.set_concrete();
  });
  return result;
}

template <class T, class Self>
template <class F>
auto AsyncValueMethods<T, Self>::flat_map(F&& f) const {
  using Result = std::invoke_result_t<F&, T&>;
  static_assert(kIsAsyncValueRef<Result>, "flat_map's function returns an AsyncValueRef");
  auto result =
      Result(own_new(allocate_bare_async_value(&kTypedIndirectType<typename Result::element_type>)));
  and_then([result, f = std::forward<F>(f)](AsyncValuePtr<T> source) mutable {
    if (source.is_error()) return result.set_error(source.error());
    Result inner;
    try {
      inner = f(source.get());
    } catch (...) {
      return result.set_error(current_exception_as_error());
    }
    result.forward_to(std::move(inner));
  });
  return result;
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
  result.emplace(std::forward<Args>(args)...);
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
