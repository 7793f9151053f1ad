// ScopedAsyncValue<T>: an async value that lives on the stack or inside another object; no allocation.
//
// References may be taken while it lives. When the value is available its destructor waits until the other
// references are gone, since who completes a value holds one for a moment longer than others wait for it:
// so none may be held on the destroying thread, nor for longer than kMostWaitMs, which is a failed check.
// So is a value that is not available, and is referenced or waited for. It is to be completed, if at all,
// outside of other values' continuations.
#pragma once

#include <chrono>
#include <thread>

#include "core/async_value.h"

namespace coppice {

template <class T, int kMostWaitMs = 10'000>
class ScopedAsyncValue {
 public:
  ScopedAsyncValue() : value_(new (storage_ + kPadding) AsyncValue(&kType)) {
    ref_ = detail::own_new(value_);
  }
  ScopedAsyncValue(const ScopedAsyncValue&) = delete;
  ScopedAsyncValue& operator=(const ScopedAsyncValue&) = delete;
  ~ScopedAsyncValue() {
    COPPICE_CHECK(ref_->is_available() || ref_.unique(),
                  "a scoped async value is destroyed while referenced");
    COPPICE_CHECK(!ref_->has_waiters(), "a scoped async value is destroyed while something waits for it");
    // There is nothing to sleep on: whoever drops the last other reference must not touch this memory
    // afterwards.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kMostWaitMs);
    while (!ref_.unique()) {
      COPPICE_CHECK(std::chrono::steady_clock::now() < give_up,
                    "a scoped async value is destroyed while referenced, for {} ms", kMostWaitMs);
      std::this_thread::yield();
    }
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
