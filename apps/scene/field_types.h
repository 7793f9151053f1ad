// The kinds of value that a schema's field can have, their options, and the conversions to and from C++
// members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "apps/scene/acts.h"
#include "core/math.h"

namespace coppice::scene {

enum class FieldKind { kBool, kInteger, kNumber, kString, kChoice, kVector, kTable, kTables };

using FieldValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

// An interval for a number, or for every component of a vector.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;

  bool contains(double x) const {
    return (min_excluded ? x > min : x >= min) && (max_excluded ? x < max : x <= max);
  }
};

inline Bounds between(double min, double max) { return {.min = min, .max = max}; }
inline Bounds at_least(double min) { return {.min = min}; }
inline Bounds above(double min) { return {.min = min, .min_excluded = true}; }

inline Bounds intersect(const Bounds& a, const Bounds& b) {
  Bounds both = a;
  if (b.min > a.min) both.min = b.min, both.min_excluded = b.min_excluded;
  if (b.max < a.max) both.max = b.max, both.max_excluded = b.max_excluded;
  return both;
}

// This rule says how many components a vector has.
enum class VectorRule {
  kSpatial,   // as many as the scene has dimensions; in 2-D a third one is allowed when it is 0
  kRotation,  // 3 in 3-D (about x, y, z); in 2-D one plain number, about z
  kFixed,     // as many as the member
};

// The field exists only when the choice field `key` of the same table, declared earlier, has one of `values`.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

struct FieldOptions {
  std::string unit = {};
  Bounds bounds = {};
  bool required = false;  // with only_if: required whenever the condition holds
  Condition only_if = {};
  // A key of the same table that must not be given as well; an override of either replaces both.
  std::string conflicts_with = {};
  std::string default_text = {};  // what the reference says when the default is computed
  VectorRule vector = VectorRule::kSpatial;
  Acts acts = Acts::kRestart;
  bool is_dimension = false;  // this integer is the number of dimensions, for the vectors declared after it
};

template <class M>
struct IsOptional : std::false_type {};
template <class M>
struct IsOptional<std::optional<M>> : std::true_type {
  using Value = M;
};

template <class M>
constexpr FieldKind kind_of() {
  if constexpr (IsOptional<M>::value) {
    return kind_of<typename IsOptional<M>::Value>();
  } else if constexpr (std::is_same_v<M, bool>) {
    return FieldKind::kBool;
  } else if constexpr (std::is_enum_v<M>) {
    return FieldKind::kChoice;
  } else if constexpr (std::is_integral_v<M>) {
    return FieldKind::kInteger;
  } else if constexpr (std::is_floating_point_v<M>) {
    return FieldKind::kNumber;
  } else if constexpr (std::is_same_v<M, std::string>) {
    return FieldKind::kString;
  } else {
    static_assert(M::SizeAtCompileTime > 0, "a field is a bool, number, string, enum or fixed-size vector");
    return FieldKind::kVector;
  }
}

// Returns the bounds of the member's type, as far as TOML's 64-bit signed integers go.
template <class M>
Bounds natural_bounds() {
  if constexpr (IsOptional<M>::value) {
    return natural_bounds<typename IsOptional<M>::Value>();
  } else if constexpr (std::is_integral_v<M> && !std::is_same_v<M, bool>) {
    using Limits = std::numeric_limits<M>;
    constexpr auto toml_max = static_cast<double>(std::numeric_limits<std::int64_t>::max());
    return between(static_cast<double>(Limits::min()),
                   std::min(static_cast<double>(Limits::max()), toml_max));
  } else if constexpr (std::is_same_v<M, float>) {
    return between(-std::numeric_limits<float>::max(), std::numeric_limits<float>::max());
  } else {
    return {};
  }
}

template <class M>
constexpr std::size_t vector_size_of() {
  if constexpr (IsOptional<M>::value) {
    return vector_size_of<typename IsOptional<M>::Value>();
  } else if constexpr (kind_of<M>() == FieldKind::kVector) {
    return M::SizeAtCompileTime;
  } else {
    return 0;
  }
}

template <class M>
std::vector<std::string> choices_of() {
  if constexpr (IsOptional<M>::value) {
    return choices_of<typename IsOptional<M>::Value>();
  } else if constexpr (std::is_enum_v<M>) {
    const std::span<const std::string_view> names = enum_names(M{});
    return {names.begin(), names.end()};
  } else {
    return {};
  }
}

template <class M>
std::optional<FieldValue> to_value(const M& member) {
  if constexpr (IsOptional<M>::value) {
    return member ? to_value(*member) : std::nullopt;
  } else if constexpr (kind_of<M>() == FieldKind::kChoice) {
    return FieldValue(std::string(enum_names(member)[static_cast<std::size_t>(member)]));
  } else if constexpr (kind_of<M>() == FieldKind::kInteger) {
    return FieldValue(static_cast<std::int64_t>(member));
  } else if constexpr (kind_of<M>() == FieldKind::kNumber) {
    return FieldValue(static_cast<double>(member));
  } else if constexpr (kind_of<M>() == FieldKind::kVector) {
    return FieldValue(std::vector<double>(member.data(), member.data() + member.size()));
  } else {
    return FieldValue(member);
  }
}

// `value` was checked by the reader: right kind, a known name, enough components.
template <class M>
void from_value(const FieldValue& value, M& member) {
  if constexpr (IsOptional<M>::value) {
    from_value(value, member.emplace());
  } else if constexpr (kind_of<M>() == FieldKind::kChoice) {
    const auto names = enum_names(M{});
    const auto found = std::find(names.begin(), names.end(), std::get<std::string>(value));
    member = static_cast<M>(found - names.begin());
  } else if constexpr (kind_of<M>() == FieldKind::kInteger) {
    member = static_cast<M>(std::get<std::int64_t>(value));
  } else if constexpr (kind_of<M>() == FieldKind::kNumber) {
    member = static_cast<M>(std::get<double>(value));
  } else if constexpr (kind_of<M>() == FieldKind::kVector) {
    const auto& components = std::get<std::vector<double>>(value);
    std::copy_n(components.begin(), member.size(), member.data());
  } else {
    member = std::get<M>(value);
  }
}

}  // namespace coppice::scene
