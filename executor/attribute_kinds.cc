// Attributes and the kinds that operations take (see attribute_kinds.h).
#include "executor/attribute_kinds.h"

#include <fmt/format.h>

#include <cmath>

namespace coppice::executor {
namespace {

const char* describe(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kBool:
      return "true or false";
    case AttributeKind::kInt32:
      return "a 32-bit integer";
    case AttributeKind::kInt64:
      return "an integer";
    case AttributeKind::kReal32:
      return "a 32-bit real number (with a point)";
    case AttributeKind::kReal:
      return "a real number (with a point)";
    case AttributeKind::kString:
      return "a string";
    case AttributeKind::kFunction:
      return "an @function";
    case AttributeKind::kIntegers:
      return "a list of integers";
    case AttributeKind::kReals:
      return "a list of real numbers (with a point)";
    case AttributeKind::kStrings:
      return "a list of strings";
    case AttributeKind::kBinding:
      return "a $name";
  }
  return "?";
}

bool is_empty_list(const Attribute& value) {
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  return integers != nullptr && integers->empty();
}

// A number fits if it stays a finite number, and does not become zero unless it is zero. A number that
// rounds to the largest one is not too large.
bool fits_32_bits(double value) {
  if (!std::isfinite(value) || value == 0) return true;
  const auto rounded = static_cast<float>(value);
  return std::isfinite(rounded) && rounded != 0;
}

bool fits(const Attribute& value, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kBool:
      return std::holds_alternative<bool>(value);
    case AttributeKind::kInt32: {
      const auto* integer = std::get_if<int64_t>(&value);
      return integer != nullptr && *integer == static_cast<int32_t>(*integer);
    }
    case AttributeKind::kInt64:
      return std::holds_alternative<int64_t>(value);
    case AttributeKind::kReal32: {
      const auto* real = std::get_if<double>(&value);
      return real != nullptr && fits_32_bits(*real);
    }
    case AttributeKind::kReal:
      return std::holds_alternative<double>(value);
    case AttributeKind::kString:
      return std::holds_alternative<std::string>(value);
    case AttributeKind::kFunction:
      return std::holds_alternative<FunctionRef>(value);
    case AttributeKind::kIntegers:
      return std::holds_alternative<std::vector<int64_t>>(value);
    case AttributeKind::kReals:
      return std::holds_alternative<std::vector<double>>(value) || is_empty_list(value);
    case AttributeKind::kStrings:
      return std::holds_alternative<std::vector<std::string>>(value) || is_empty_list(value);
    case AttributeKind::kBinding:
      return std::holds_alternative<BindingRef>(value);
  }
  return false;
}

}  // namespace

std::string why_unfit(const Attribute& value, AttributeKind kind) {
  if (fits(value, kind)) return "";
  const auto* real = std::get_if<double>(&value);
  if (kind == AttributeKind::kReal32 && real != nullptr)
    return fmt::format(": {} is too {} for a real of 32 bits", *real,
                       std::abs(*real) > 1 ? "large" : "small");
  return fmt::format(" must be {}", describe(kind));
}

}  // namespace coppice::executor
