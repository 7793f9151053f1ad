// Defines how a kernel's arguments get in: which are handles (bound at specialization), which are plain
// (packed in the launch block), shared by the host's launch and the kernel's entry so that both count and
// align alike.
//
// Device-clean. A handle struct is an aggregate whose members are all handles, or std::arrays of them; it is
// recognised by its first member. Plain arguments are trivially copyable and packed in order, each at its own
// alignment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sparse/device/atomic_handles.h"
#include "sparse/device/list_handles.h"
#include "sparse/device/view.h"

namespace coppice::device {

template <class T>
inline constexpr bool is_handle = requires {
  typename T::Value;
  T::kRole;
  requires std::is_base_of_v<Handle<typename T::Value, T::kRole>, T>;
};

// Converts to any handle and to nothing else.
struct HandleProbe {
  template <class T, class = std::enable_if_t<is_handle<T>>>
  operator T() const;
};

// Handles fill an array in a struct one by one, without braces of its own.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wmissing-braces"
#endif
template <class T, size_t... I>
constexpr bool takes_handles(std::index_sequence<I...>) {
  return requires { T{(void(I), HandleProbe{})...}; };
}

// Returns how many handles an aggregate starts with; 0 when it is no handle struct. A handle cannot be
// left out, so that only the whole number initialises it: at most as many as would fill it.
template <class T, size_t N = sizeof(T) / sizeof(FieldId)>
constexpr size_t handle_count() {
  if constexpr (is_handle<T>)
    return 1;
  else if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T> || N == 0)
    return 0;
  else if constexpr (takes_handles<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return handle_count<T, N - 1>();
}
template <class T>
inline constexpr bool is_handle_argument = handle_count<T>() > 0;

template <class T>
inline constexpr bool is_place_argument = false;  // Cell, Block...: given by the loop, not by the caller
template <int D>
inline constexpr bool is_place_argument<Cell<D>> = true;
template <int D>
inline constexpr bool is_place_argument<Block<D>> = true;
template <int D, uint32_t kBytes>
inline constexpr bool is_place_argument<BlockTeam<D, kBytes>> = true;
template <int D>
inline constexpr bool is_place_argument<Entry<D>> = true;
template <>
inline constexpr bool is_place_argument<Item> = true;
template <int D>
inline constexpr bool is_place_argument<GridItem<D>> = true;
template <>
inline constexpr bool is_place_argument<Team> = true;

// A kernel gets a copy of each argument: what is written to it through a reference would
// be lost, or seen by other runs.
template <class T>
inline constexpr bool is_kernel_parameter =
    !std::is_reference_v<T> || (std::is_lvalue_reference_v<T> && std::is_const_v<std::remove_reference_t<T>>);

// Calls visit(handle) for every handle of an argument, in order.
template <class T, class Visit>
constexpr void for_each_handle(T& value, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (is_handle<Plain>) {
    visit(value);
  } else if constexpr (handle_count<Plain>() == 0) {
    return;
  } else if constexpr (FixedArray<Plain>) {
    [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      (for_each_handle(value.data()[I], visit), ...);
    }
    (std::make_index_sequence<sizeof(Plain) / sizeof(typename Plain::value_type)>{});
  } else {
    constexpr size_t n = member_count<Plain>();
    static_assert(n <= kMostMembers, "a handle struct has at most 8 members; pass several structs");
    if constexpr (n <= kMostMembers)
      with_members<n>(
          value, [&](auto&... members)
                     __attribute__((always_inline)) { (for_each_handle(members, visit), ...); });
  }
}

// Makes a handle or a struct of handles as a kernel gets it: the next bindings, in order.
template <class T>
COPPICE_INLINE constexpr T bound_handles(uint32_t& binding) {
  return [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    return T{(void(I), HandleAccess::binding(binding++))...};
  }
  (std::make_index_sequence<handle_count<T>()>{});
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// Returns the bytes that the plain arguments among Args take in LaunchBlock::arguments.
template <class... Args>
constexpr size_t packed_bytes() {
  size_t at = 0;
  auto add = [&]<class T>(std::type_identity<T>) {
    if constexpr (!is_handle_argument<T> && !is_place_argument<T>) at = align_up(at, alignof(T)) + sizeof(T);
  };
  (add(std::type_identity<Args>{}), ...);
  return at;
}

// Returns a fingerprint of where every argument lies, compared between clang (for the device) and the host
// compiler.
template <class... Args>
constexpr uint32_t argument_layout() {
  uint32_t hash = 2166136261u;  // FNV-1a
  size_t at = 0;
  auto mix = [&](size_t value) { hash = (hash ^ static_cast<uint32_t>(value)) * 16777619u; };
  auto add = [&]<class T>(std::type_identity<T>) {
    if constexpr (is_place_argument<T>)
      return;
    else if constexpr (is_handle_argument<T>) {
      mix(handle_count<T>());
    } else {
      at = align_up(at, alignof(T)), mix(at), mix(sizeof(T)), at += sizeof(T);
    }
  };
  (add(std::type_identity<Args>{}), ...);
  return hash;
}

// Counts the handles among Args, those in structs included.
template <class... Args>
constexpr uint32_t total_handles() {
  return (0u + ... + static_cast<uint32_t>(is_place_argument<Args> ? 0 : handle_count<Args>()));
}

}  // namespace coppice::device
