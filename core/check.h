// COPPICE_CHECK and COPPICE_DCHECK: assertions about our own bugs, which print what was compared and abort.
//
// COPPICE_CHECK(size <= capacity, "tree {} is full", name) is always on; the message is fmt-style and
// optional. COPPICE_DCHECK is the same in debug builds (COPPICE_DEBUG) and nothing otherwise, operands
// unevaluated. Neither is for the user's or the world's faults: those throw coppice::Error (core/error.h).
// The condition must not hold a bare comma: parenthesise `(std::is_same_v<A, B>)`.
#pragma once

#include <fmt/core.h>
#include <fmt/format.h>

#include <string>
#include <type_traits>

namespace coppice::detail {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string* operands,
                               const std::string& message = {});

template <class T>
std::string operand_text(const T& value) {
  if constexpr (std::is_null_pointer_v<T>) {
    return "nullptr";
  } else if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", +static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_pointer_v<T> && !std::is_convertible_v<T, const char*>) {
    return value == nullptr ? "nullptr" : fmt::format("{}", reinterpret_cast<const void*>(value));
  } else if constexpr (fmt::is_formattable<T>::value) {
    return fmt::format("{}", value);
  } else {
    return "?";
  }
}

// Holds the outcome while the operands are still alive. The text is made only on failure and leaked: we
// abort.
struct CheckOutcome {
  const std::string* operands = nullptr;

  bool holds(bool condition) { return condition; }
  template <class Comparison>
  requires requires(const Comparison& c) { c.text(); }
  bool holds(const Comparison& comparison) {
    if (comparison.holds) return true;
    operands = new std::string(comparison.text());
    return false;
  }
};

template <class L, class R>
struct CheckComparison {
  bool holds;
  const L& left;
  const R& right;
  const char* symbol;
  explicit operator bool() const { return holds; }
  std::string text() const { return operand_text(left) + " " + symbol + " " + operand_text(right); }
};

template <class L>
struct CheckOperand {
  const L& left;
  explicit operator bool() const { return static_cast<bool>(left); }
};

// `size == 0` compares an unsigned with a literal that is no longer a literal here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#define COPPICE_DETAIL_COMPARE(op)                                          \
  template <class L, class R>                                               \
  CheckComparison<L, R> operator op(const CheckOperand<L>& l, const R& r) { \
    return {static_cast<bool>(l.left op r), l.left, r, #op};                \
  }
COPPICE_DETAIL_COMPARE(==)
COPPICE_DETAIL_COMPARE(!=)
COPPICE_DETAIL_COMPARE(<)
COPPICE_DETAIL_COMPARE(<=)
COPPICE_DETAIL_COMPARE(>)
COPPICE_DETAIL_COMPARE(>=)
COPPICE_DETAIL_COMPARE(&)
COPPICE_DETAIL_COMPARE(|)
#undef COPPICE_DETAIL_COMPARE
#pragma GCC diagnostic pop

// `CheckLeft{} <= a == b` parses as `(CheckLeft{} <= a) == b`, which is how both operands are caught.
struct CheckLeft {
  template <class L>
  CheckOperand<L> operator<=(const L& left) const {
    return {left};
  }
};

template <class L>
bool check_truth(const CheckOperand<L>& operand) {
  return static_cast<bool>(operand);
}
inline bool check_truth(bool condition) { return condition; }
template <class L, class R>
const CheckComparison<L, R>& check_truth(const CheckComparison<L, R>& comparison) {
  return comparison;
}

}  // namespace coppice::detail

#define COPPICE_CHECK(condition, ...)                                                                    \
  do {                                                                                                   \
    _Pragma("GCC diagnostic push") _Pragma(                                                              \
        "GCC diagnostic ignored \"-Wparentheses\"") if (::coppice::detail::CheckOutcome coppice_outcome; \
                                                        !coppice_outcome.holds(                          \
                                                            ::coppice::detail::check_truth(              \
                                                                ::coppice::detail::CheckLeft{} <=        \
                                                                condition)))                             \
        [[unlikely]] ::coppice::detail::check_failed(                                                    \
            __FILE__, __LINE__, #condition,                                                              \
            coppice_outcome.operands __VA_OPT__(, ::fmt::format(__VA_ARGS__)));                          \
    _Pragma("GCC diagnostic pop")                                                                        \
  } while (false)

#ifdef COPPICE_DEBUG
#define COPPICE_DCHECK(...) COPPICE_CHECK(__VA_ARGS__)
#else
#define COPPICE_DCHECK(condition, ...) \
  do {                                 \
    (void)sizeof((condition) ? 1 : 0); \
  } while (false)
#endif
