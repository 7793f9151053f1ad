// Writes parameters as TOML and as arguments.
#include "apps/viewer/parameter_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace coppice::viewer {
namespace {

std::string toml_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted_for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string toml_value(Parameter::Kind kind, std::span<const double> numbers) {
  if (kind == Parameter::Kind::kInteger) return fmt::format("{}", std::llround(numbers[0]));
  if (kind != Parameter::Kind::kVector) return toml_float(numbers[0]);
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ", ") + toml_float(number);
  return "[" + text + "]";
}

std::string toml_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string changed_as_toml(std::span<const Parameter> parameters) {
  std::string text;
  for (const Parameter& p : parameters) {
    if (!p.is_changed || p.value.empty()) continue;
    const size_t bracket = p.path.find(']');
    if (bracket == std::string::npos) {
      text += fmt::format("{} = {}\n", p.path, p.value);
    } else {
      text += fmt::format("# in {}: {} = {}\n", p.path.substr(0, bracket + 1),
                          p.path.substr(std::min(bracket + 2, p.path.size())), p.value);
    }
  }
  return text;
}

std::string changed_as_arguments(std::span<const Parameter> parameters) {
  std::string text;
  for (const Parameter& p : parameters) {
    if (!p.is_changed || p.value.empty()) continue;
    text += (text.empty() ? "" : " ") + ("--set " + quoted_for_shell(p.path + "=" + p.value));
  }
  return text;
}

}  // namespace coppice::viewer
