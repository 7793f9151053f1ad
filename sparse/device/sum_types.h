// The types of values that sums are made of.
//
// Device-clean.
#pragma once
#include <type_traits>

#include "sparse/device/handle_base.h"
#include "sparse/device/members.h"

#define COPPICE_WHAT_IS_ADDED                                                                          \
  "what is added is a float, a double, an integer of 32 or 64 bits, an Eigen matrix or std::array of " \
  "these, "                                                                                            \
  "or a struct of at most 8 of all of these, without C arrays"

namespace coppice::device {

// These are the numbers that atomic operations take.
template <class T>
concept AtomicNumber = std::is_same_v<T, float> || std::is_same_v<T, double> ||
    (std::is_integral_v<T> && !std::is_same_v<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8));

// std::array is known by its members, so that kernels without it need no header.
template <class T>
concept FixedArray = std::is_aggregate_v<T> && requires(T& values) {
  typename T::value_type;
  requires std::is_same_v<decltype(values.data()), typename T::value_type*>;
};

template <class T>
constexpr bool is_sum();
struct AreSums {
  template <class... Members>
  constexpr auto operator()(Members&...) const {
    return std::bool_constant<(is_sum<std::remove_const_t<Members>>() && ...)>{};
  }
};
template <class T>
constexpr bool has_sums_as_members() {
  constexpr size_t n = member_count<T>();
  if constexpr (n == 0 || n > kMostMembers)
    return false;
  else
    return decltype(with_members<n>(std::declval<T&>(), AreSums{}))::value;
}
// Tells whether values of the type can be added to atomically: numbers, Eigen's matrices and std::arrays of
// them, and structs of at most 8 of these.
template <class T>
constexpr bool is_sum() {
  if constexpr (AtomicNumber<T>)
    return true;
  else if constexpr (FixedEigenMatrix<T>)
    return AtomicNumber<typename T::Scalar>;
  else if constexpr (FixedArray<T>)
    return is_sum<typename T::value_type>();
  else if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T> && !std::is_union_v<T>)
    return has_sums_as_members<T>();
  else
    return false;
}

template <class T, template <class> class Is>
constexpr bool numbers_are();
template <template <class> class Is>
struct AreNumbers {
  template <class... Members>
  constexpr auto operator()(Members&...) const {
    return std::bool_constant<(numbers_are<std::remove_const_t<Members>, Is>() && ...)>{};
  }
};
// Tells whether all numbers of a value that may be added are of such types: std::is_integral, for example.
template <class T, template <class> class Is>
constexpr bool numbers_are() {
  if constexpr (!is_sum<T>() || AtomicNumber<T>)
    return Is<T>::value;
  else if constexpr (FixedEigenMatrix<T>)
    return Is<typename T::Scalar>::value;
  else if constexpr (FixedArray<T>)
    return numbers_are<typename T::value_type, Is>();
  else
    return decltype(with_members<member_count<T>()>(std::declval<T&>(), AreNumbers<Is>{}))::value;
}
// Tells whether sums of such values do not depend on their order.
template <class T>
constexpr bool has_integers_alone() {
  return numbers_are<T, std::is_integral>();
}
// Says how values are added to that cross from rank to rank as bytes (sparse/ranks): by the type that all of
// their numbers have.
enum class SumKind : uint8_t { kNone, kMixed, kFloat, kDouble, kWord32, kWord64 };
template <class T>
struct IsFloat : std::is_same<T, float> {};
template <class T>
struct IsDouble : std::is_same<T, double> {};
template <class T>
struct IsWord32 : std::bool_constant<std::is_integral_v<T> && sizeof(T) == 4> {};
template <class T>
struct IsWord64 : std::bool_constant<std::is_integral_v<T> && sizeof(T) == 8> {};
template <class T>
constexpr SumKind sum_kind() {
  if constexpr (!is_sum<T>())
    return SumKind::kNone;
  else if constexpr (numbers_are<T, IsFloat>())
    return SumKind::kFloat;
  else if constexpr (numbers_are<T, IsDouble>())
    return SumKind::kDouble;
  else if constexpr (numbers_are<T, IsWord32>())
    return SumKind::kWord32;
  else if constexpr (numbers_are<T, IsWord64>())
    return SumKind::kWord64;
  else
    return SumKind::kMixed;
}
// Tells whether values consist of floats that lie in whole aligned groups of four: Vec4f, or an
// alignas(16) struct of three floats and of what pads it.
template <class T>
constexpr bool has_fours_of_floats() {
  return alignof(T) % 16 == 0 && is_sum<T>() && numbers_are<T, IsFloat>();
}

}  // namespace coppice::device
