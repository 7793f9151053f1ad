// Gives a kernel its parameters: handles from bindings, plain arguments from the launch block or from their
// slots, and the loop's own.
//
// Device-clean, for loops.h.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "sparse/device/atomic_access.h"

namespace coppice::device {

// Turns a launch's arguments into what the kernel's parameters are: handles from
// bindings, plain ones from the block.
struct ArgumentReader {
  const LaunchBlock* block;
  size_t at = 0;
  uint32_t binding = 0;
  uint32_t argument = 0;
  uint32_t plain = 0;

  template <class T>
  COPPICE_INLINE T next() {
    ++argument;
    if constexpr (is_handle_argument<T>) {
      return bound_handles<T>(binding);
    } else if constexpr (is_place_argument<T>) {
      return T{};
    } else {
      static_assert(is_value<T>, "a kernel's plain arguments must be trivially copyable");
      at = align_up(at, alignof(T));
      union Bytes {  // a type may have no default constructor
        COPPICE_INLINE Bytes() {}
        T value;
      } copy;
      __builtin_memcpy(static_cast<void*>(&copy.value), source(), sizeof(T));
      at += sizeof(T), ++plain;
      if constexpr (is_view<T>) copy.value.launch = block, copy.value.argument = argument;
      return copy.value;
    }
  }

  // Returns where the next plain argument is: in the block, or where its slot has it.
  COPPICE_INLINE const unsigned char* source() const {
    const uint32_t slots = coppice_loop.slots;
    if (plain >= 32 || (slots >> plain & 1) == 0) return block->arguments + at;
    const auto before = static_cast<uint32_t>(__builtin_popcount(slots & ((1u << plain) - 1)));
    const unsigned char* slot = nullptr;
    __builtin_memcpy(&slot, block->arguments + coppice_loop.slots_at + before * sizeof slot, sizeof slot);
    return slot;
  }
};

template <class T, class LoopItem>
COPPICE_INLINE const T& choose(const T& argument, const LoopItem& place) {
  if constexpr (std::is_same_v<T, LoopItem>)
    return place;
  else
    return argument;
}

// This does not use std::apply, which is too large for the inliner at first: argument promotion would
// rewrite the call and drop its loop's access group, and LLVM would check the pointers of every row for
// overlap.
template <auto kKernel, class... Args, class LoopItem, size_t... I>
COPPICE_INLINE void call_kernel(const std::tuple<Args...>& pack, const LoopItem& place,
                                std::index_sequence<I...>) {
  kKernel(choose<Args, LoopItem>(std::get<I>(pack), place)...);
}

template <class... Args>
struct LoopItemOf {
  using Type = void;
};
template <class First, class... Rest>
struct LoopItemOf<First, Rest...> {
  using Type = std::conditional_t<is_place_argument<First>, First, typename LoopItemOf<Rest...>::Type>;
};

// Calls visit(type, binding) for each handle of a kernel.
template <class... Args, class Visit>
COPPICE_INLINE void each_handle_of(Visit&& visit) {
  uint32_t binding = 0;
  auto one = [&]<class T>(std::type_identity<T>) {
    if constexpr (is_handle_argument<T>) {
      uint32_t first = binding;
      const T value = bound_handles<T>(first);
      for_each_handle(value, [&]<class H>(const H&) { visit(std::type_identity<H>{}, binding++); });
    }
  };
  (one(std::type_identity<Args>{}), ...);
}

// An item's walk begins where the last one's ended: then items are not independent of each other.
template <class T>
constexpr bool remembers_walks() {
  bool found = false;
  if constexpr (is_handle_argument<T>) {
    uint32_t binding = 0;
    const T value = bound_handles<T>(binding);
    for_each_handle(value, [&]<class H>(const H&) {
      found = found || H::kRole == Role::kGrow || H::kRole == Role::kAppend;
    });
  }
  return found;
}

// Tells whether sums of a handle of the kernel may be delayed, on a device and in a launch that do so.
template <class T>
constexpr bool may_delay_sums() {
  bool found = false;
  if constexpr (is_handle_argument<T>) {
    uint32_t binding = 0;
    const T value = bound_handles<T>(binding);
    for_each_handle(value, [&]<class H>(const H&) {
      if constexpr (H::kRole == Role::kAccumulate) found = found || is_delayed_sum<typename H::Value>();
    });
  }
  return found;
}

// Returns the number of a range's item. Items are counted from 0: behind the last one, a number may
// be more than an int64_t has.
COPPICE_INLINE int64_t item_number(const LaunchBlock* block, uint64_t i) {
  return static_cast<int64_t>(static_cast<uint64_t>(block->loop_begin) + i);
}

}  // namespace coppice::device
