// Default values of structs that kernels take, for coppice-kernelgen: it writes these structs anew for the
// host, from debug information, which has no default values (gpu/jit/default_values.h).
//
// Device-clean, for loops.h.
#pragma once
#include <type_traits>
#include <utility>

#include "sparse/device/tiles.h"

namespace coppice::device {

template <class T>
struct DefaultOf {
  [[gnu::used]] static constexpr T kValue{};
};
// The constant of a struct that code makes, as a member of Eigen's needs: coppice-kernelgen evaluates that
// code, and no kernel sees it. It is this file's alone, so that no other one may have made it before.
namespace {
struct OfThisFile;
}
template <class T, class = OfThisFile>
struct MadeDefaultOf {
  [[gnu::used]] inline static const T kValue{};
};

template <class T>
concept IsDefinedClass = std::is_class_v<T> && requires {
  sizeof(T);
};

// A struct some of whose members may have default values.
template <class T>
concept MayHaveDefaultValues = IsDefinedClass<T> && !std::is_trivially_default_constructible_v<T> &&
                               !is_handle_argument<T> && !is_place_argument<T> && !is_view<T> &&
                               std::is_aggregate_v<T> && std::is_trivially_destructible_v<T> && requires {
  T{};
};

// The same of a struct whose default values are constant.
template <class T>
concept HasConstantDefaultValues = MayHaveDefaultValues<T> && std::is_trivially_copyable_v<T> && requires {
  typename std::bool_constant<(T{}, true)>;
};

constexpr bool is_there(const void* constant) { return constant != nullptr; }

template <class T>
constexpr bool note_default_values();
struct NotesDefaultValues {
  template <class... Members>
  constexpr auto operator()(Members&...) const {
    return std::bool_constant<(note_default_values<std::remove_const_t<Members>>() & ... & true)>{};
  }
};

// Makes the constant of a parameter's struct, or of that which a pointer or View leads to, which an array
// holds, or which is a field's value. Members of structs are seen by none of this: coppice-kernelgen refuses
// what it would need there.
template <class T>
constexpr bool note_default_values() {
  if constexpr (std::is_pointer_v<T>)
    return note_default_values<std::remove_cv_t<std::remove_pointer_t<T>>>();
  else if constexpr (is_view<T>)
    return note_default_values<std::remove_cv_t<std::remove_pointer_t<decltype(T::items)>>>();
  else if constexpr (!IsDefinedClass<T>)
    return true;
  else if constexpr (is_handle<T>)
    return note_default_values<std::remove_cv_t<typename T::Value>>();
  else if constexpr (FixedArray<T>)
    return note_default_values<std::remove_cv_t<typename T::value_type>>();
  else if constexpr (is_handle_argument<T> && member_count<T>() <= kMostMembers)
    return decltype(with_members<member_count<T>()>(std::declval<T&>(), NotesDefaultValues{}))::value;
  else if constexpr (HasConstantDefaultValues<T>)
    return is_there(&DefaultOf<T>::kValue);
  else if constexpr (MayHaveDefaultValues<T>)
    return is_there(&MadeDefaultOf<T>::kValue);
  else
    return true;
}

}  // namespace coppice::device
