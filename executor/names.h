// These rules say what the names in modules look like.
#pragma once
#include <algorithm>
#include <string_view>

namespace coppice::executor {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

// Functions, registers and types have such names: [A-Za-z0-9_.]+
constexpr bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
}

// Operations have names that start with a letter or '_', and that are none of the text's own words; this
// tells an attribute or the end of a function from the next operation.
constexpr bool is_operation_name(std::string_view name) {
  return is_name(name) && !is_digit(name[0]) && name[0] != '.' && name != "func" && name != "return" &&
         name != "true" && name != "false" && name != "inf" && name != "nan";
}

}  // namespace coppice::executor
