// What the names in modules look like.
#pragma once
#include <algorithm>
#include <string_view>

namespace coppice::executor {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

// Of functions, registers and types: [A-Za-z0-9_.]+
constexpr bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
}

// Of operations: names that start with a letter or '_', and none of the text's own words; an attribute or the
// end of a function is told from the next operation by this.
constexpr bool is_operation_name(std::string_view name) {
  return is_name(name) && !is_digit(name[0]) && name[0] != '.' && name != "func" && name != "return" &&
         name != "true" && name != "false" && name != "inf" && name != "nan";
}

}  // namespace coppice::executor
