// Text as JSON (RFC 8259).
#pragma once

#include <string>
#include <string_view>

namespace coppice::cli {

// `text` in quotes, with what JSON wants escaped. Bytes that are no UTF-8, as file
// names may hold, become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace coppice::cli
