// Characters of text that may be no UTF-8, for formats that must be.
#pragma once
#include <cstddef>
#include <string_view>

namespace coppice {

// Returns the bytes of the UTF-8 character that `text` begins with; 0 if it begins with none (overlong,
// surrogate, cut off, too large).
size_t utf8_length(std::string_view text);

}  // namespace coppice
