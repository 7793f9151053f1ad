// Replaces control characters (see printable.h).
#include "core/printable.h"

#include <fmt/format.h>

namespace coppice {
namespace {

std::string without_controls(std::string_view text, bool keeps_lines) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters, too, of two bytes.
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (keeps_lines && (text[i] == '\n' || text[i] == '\t')) {
      shown += text[i];
    } else if (text[i] == '\n' || text[i] == '\r') {
      shown += ' ';
    } else if (is_c1) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return without_controls(text, false); }
std::string printable_lines(std::string_view text) { return without_controls(text, true); }

}  // namespace coppice
