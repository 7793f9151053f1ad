// ScopedAsyncValue<T>: an async value that lives on the stack or inside another object; no allocation.
//
// References may be taken while it lives. Its destructor destroys the payload, and checks that all other
// references are gone and that nothing waits for it any more: to be completed, if at all, outside of other
// values' continuations.
#pragma once

#include "core/async_value.h"

namespace coppice {

template <class T>
class ScopedAsyncValue {
 public:
  ScopedAsyncValue() : value_(new (storage_ + kPadding) AsyncValue(&kType)) {
    ref_ = detail::own_new(value_);
  }
  ScopedAsyncValue(const ScopedAsyncValue&) = delete;
  ScopedAsyncValue& operator=(const ScopedAsyncValue&) = delete;
  ~ScopedAsyncValue() {
    COPPICE_CHECK(ref_.unique(), "a scoped async value is destroyed while referenced");
    COPPICE_CHECK(!ref_->has_waiters(), "a scoped async value is destroyed while something waits for it");
  }

  AsyncValuePtr<T> as_ptr() const { return AsyncValuePtr<T>(value_); }
  AsyncValueRef<T> copy_ref() const { return AsyncValueRef<T>(ref_); }

 private:
  using Heap = detail::HeapAsyncValue<T>;
  static constexpr size_t kPadding = Heap::kPadding;
  static constexpr AsyncValueType kType = {&typeid(T), Heap::destroy_payload,
                                           [](AsyncValue* value) { std::destroy_at(value); },
                                           /*is_indirect=*/false, kKeepPayloadOnError<T>};

  alignas(Heap::kAlignment) std::byte storage_[Heap::kSize];
  AsyncValue* value_;
  RCReference<AsyncValue> ref_;
};

}  // namespace coppice
