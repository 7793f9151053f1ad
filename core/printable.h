// Text of others on a terminal, which does nothing that the text would have it do.
#pragma once

#include <string>
#include <string_view>

namespace coppice {

// Returns UTF-8 text on one line: its line breaks are spaces, and its other control characters are written as
// "\x1b".
std::string printable(std::string_view text);
// Does the same and leaves line breaks and tabs.
std::string printable_lines(std::string_view text);

}  // namespace coppice
