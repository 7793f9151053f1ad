// Takes structs apart: how many members an aggregate has, and a call with all of them.
//
// Device-clean.
#pragma once
#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/device_macros.h"

namespace coppice::device {

inline constexpr size_t kMostMembers = 8;

// Calls visit(members...) with references to the N members of an aggregate, and returns what that returns.
template <size_t N, class T, class Visit>
COPPICE_INLINE constexpr decltype(auto) with_members(T& value, Visit&& visit) {
  static_assert(N >= 1 && N <= kMostMembers);
  if constexpr (N == 1) {
    auto& [a] = value;
    return visit(a);
  } else if constexpr (N == 2) {
    auto& [a, b] = value;
    return visit(a, b);
  } else if constexpr (N == 3) {
    auto& [a, b, c] = value;
    return visit(a, b, c);
  } else if constexpr (N == 4) {
    auto& [a, b, c, d] = value;
    return visit(a, b, c, d);
  } else if constexpr (N == 5) {
    auto& [a, b, c, d, e] = value;
    return visit(a, b, c, d, e);
  } else if constexpr (N == 6) {
    auto& [a, b, c, d, e, f] = value;
    return visit(a, b, c, d, e, f);
  } else if constexpr (N == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return visit(a, b, c, d, e, f, g);
  } else {
    auto& [a, b, c, d, e, f, g, h] = value;
    return visit(a, b, c, d, e, f, g, h);
  }
}

// Converts to a member of an aggregate, whatever its type, but for an array, which no member is made from.
struct MemberProbe {
  template <class T>
  operator T() const;
};
template <class T, size_t... I>
constexpr bool takes_members(std::index_sequence<I...>) {
  return requires { T{(void(I), MemberProbe{})...}; };
}
// Returns how many members an aggregate has; one more than kMostMembers where it has more. An array counts as
// as many as it has elements, and is no member of what with_members() takes apart.
template <class T, size_t N = kMostMembers + 1>
constexpr size_t member_count() {
  if constexpr (N == 0 || takes_members<T>(std::make_index_sequence<N>{}))
    return N;
  else
    return member_count<T, N - 1>();
}

}  // namespace coppice::device
