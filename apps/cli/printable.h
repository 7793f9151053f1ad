// Text of others on one line of a terminal, which does nothing that the text would have it do.
#pragma once

#include <string>
#include <string_view>

namespace coppice::cli {

// Returns UTF-8 text with its line breaks as spaces, and its other control characters as "\x1b".
std::string printable(std::string_view text);

}  // namespace coppice::cli
